//! Errors that are not about a body, in the words of vLLM and of the framework under it.

use std::rc::Rc;

use serde_json::json;

use crate::http::{Status, plain_error};

/// 401, for a missing or wrong key.
pub(crate) fn unauthorized() -> Rc<Vec<u8>> {
    plain_error(Status::Unauthorized, "", &json!({ "error": "Unauthorized" }))
}

/// 404, for a path that is not served.
pub(crate) fn unknown_path() -> Rc<Vec<u8>> {
    plain_error(Status::NotFound, "", &json!({ "detail": "Not Found" }))
}

/// 405, naming the method that is taken.
pub(crate) fn method_not_allowed(allowed: &'static str) -> Rc<Vec<u8>> {
    let allow = format!("allow: {allowed}\r\n");
    plain_error(Status::MethodNotAllowed, &allow, &json!({ "detail": "Method Not Allowed" }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_framework_have_its_bodies() {
        let seen = |reply: Rc<Vec<u8>>| String::from_utf8(reply.to_vec()).unwrap();
        let path = seen(unknown_path());
        assert!(path.starts_with("HTTP/1.1 404 Not Found\r\ncontent-length: 22\r\n"), "{path}");
        assert!(path.ends_with("\r\n\r\n{\"detail\":\"Not Found\"}"), "{path}");
        assert!(seen(unauthorized()).ends_with("\r\n\r\n{\"error\":\"Unauthorized\"}"));
        assert!(seen(method_not_allowed("POST")).contains("\r\nallow: POST\r\n"));
    }
}
