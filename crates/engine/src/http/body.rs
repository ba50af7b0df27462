//! Replies that are no JSON of ours, and what a rendered reply says of itself.

use std::rc::Rc;

/// A reply of status 200 with a body of any type.
pub(crate) fn body(content_type: &str, mut body: Vec<u8>) -> Rc<Vec<u8>> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\ncontent-type: {content_type}\r\n\r\n"
    );
    body.splice(0..0, head.into_bytes());
    Rc::new(body)
}

/// The status of a rendered reply, which stands behind the version.
pub(crate) fn status_of(reply: &[u8]) -> u16 {
    let digits = reply.get(STATUS_START..STATUS_START + 3).unwrap_or_default();
    digits.iter().fold(0, |code, digit| code * 10 + u16::from(digit.wrapping_sub(b'0')))
}

const STATUS_START: usize = "HTTP/1.1 ".len();

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_has_the_length_of_its_body_and_its_status_is_found() {
        let reply = body("text/plain", b"abc".to_vec());
        let text = str::from_utf8(&reply).unwrap();
        assert!(text.contains("content-length: 3\r\n") && text.ends_with("\r\n\r\nabc"));
        assert_eq!(status_of(&reply), 200);
        assert_eq!(status_of(b"HTTP/1.1 404 Not Found\r\n"), 404);
    }
}
