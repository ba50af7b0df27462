//! A list of cores as people write it: `2,4-6`.

/// In the order in which they were written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CoreList(pub(crate) Vec<u32>);

/// More cores than any machine has: a slip of the finger.
const CORES_MAX: u32 = 65_536;

pub(crate) fn parse(text: &str) -> Result<CoreList, String> {
    let mut cores = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim().parse::<u32>().ok().filter(|core| *core < CORES_MAX);
        let range = number(first).zip(number(last)).filter(|(first, last)| first <= last);
        let Some((first, last)) = range else {
            return Err(format!("`{part}` is not a core or a range of cores, such as 2 or 4-6"));
        };
        for core in first..=last {
            if cores.contains(&core) {
                return Err(format!("core {core} is named twice"));
            }
            cores.push(core);
        }
    }
    Ok(CoreList(cores))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_and_ranges_are_read() {
        assert_eq!(parse("2,4-6"), Ok(CoreList(vec![2, 4, 5, 6])));
        assert_eq!(parse(" 0 "), Ok(CoreList(vec![0])));
    }

    #[test]
    fn what_is_no_list_of_cores_is_refused() {
        for wrong in ["", "a", "3-1", "1,,2", "-1", "1,1", "0-99999999"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
