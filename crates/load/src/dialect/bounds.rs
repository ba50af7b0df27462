//! Bounds on JSON: depth, and keys per object.

use super::SayingError;

pub const DEPTH_MAX: usize = 64;
pub const KEYS_MAX: usize = 4_096;
/// The shortest member of an object is `"":0,`.
const MEMBER_BYTES_MIN: usize = 5;

/// Refuses, before it is parsed, JSON that is nested too deeply or has an object with too many keys.
///
/// Nearly every event passes by counting brackets alone; only what could break a bound is walked.
pub fn check(json: &[u8]) -> Result<(), SayingError> {
    let openings = memchr::memchr2_iter(b'{', b'[', json).take(DEPTH_MAX + 1).count();
    if openings <= DEPTH_MAX && json.len() <= KEYS_MAX * MEMBER_BYTES_MIN {
        return Ok(());
    }
    walk(json)
}

fn walk(json: &[u8]) -> Result<(), SayingError> {
    let too_deep = SayingError::TooDeep { depth: DEPTH_MAX, keys: KEYS_MAX };
    let mut keys_at_depth: Vec<usize> = Vec::new();
    let mut in_string = false;
    let mut escaped = false;
    for &byte in json {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'{' | b'[' if keys_at_depth.len() == DEPTH_MAX => return Err(too_deep),
            b'{' | b'[' => keys_at_depth.push(0),
            b'}' | b']' => {
                keys_at_depth.pop();
            }
            b':' => {
                if let Some(keys) = keys_at_depth.last_mut() {
                    *keys += 1;
                    if KEYS_MAX < *keys {
                        return Err(too_deep);
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_is_bounded_and_brackets_in_strings_do_not_count() {
        let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(check(nested(64).as_bytes()), Ok(()));
        assert!(check(nested(65).as_bytes()).is_err());
        assert!(check(nested(10_000).as_bytes()).is_err());
        let harmless = format!("{{\"a\":\"{}\\\"{}\"}}", "[".repeat(100), "{".repeat(100));
        assert_eq!(check(harmless.as_bytes()), Ok(()));
    }

    #[test]
    fn keys_are_bounded_per_object_not_per_event() {
        let object = |keys: usize| {
            let members: Vec<String> = (0..keys).map(|key| format!("\"{key}\":0")).collect();
            format!("{{{}}}", members.join(","))
        };
        assert_eq!(check(object(4_096).as_bytes()), Ok(()));
        assert!(check(object(4_097).as_bytes()).is_err());
        let two = format!("[{},{}]", object(3_000), object(3_000));
        assert_eq!(check(two.as_bytes()), Ok(()));
    }
}
