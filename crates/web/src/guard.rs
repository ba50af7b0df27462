//! Which requests are answered, before anything else is done with them.
//!
//! - A page of another site cannot reach us by a name that it makes point here: on a loopback address
//!   the `Host` must be one of this machine's own names.
//! - It cannot make the browser send anything for it: a foreign `Origin` and everything that
//!   `Sec-Fetch-Site` calls cross-site is refused, except following a link. A request that changes
//!   something must name our own origin.
//! - Where a token is set, every request must have it, as a cookie or as a bearer token.

use std::fmt::Write;
use std::net::IpAddr;

use axum::http::{HeaderMap, HeaderName, Method, StatusCode, header};
use sha2::{Digest, Sha256};

/// A secret that readers must have.
#[derive(Clone)]
pub struct Token {
    digest: [u8; 32],
    /// What the cookie holds: it is as good as the token, and does not reveal it.
    cookie: String,
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

const COOKIE: &str = "inferometer-ui";

impl Token {
    pub fn new(secret: &str) -> Self {
        let cookie: [u8; 32] = Sha256::digest(format!("inferometer ui cookie\n{secret}")).into();
        Self { digest: Sha256::digest(secret).into(), cookie: hex(&cookie) }
    }

    pub(crate) fn is_secret(&self, typed: &str) -> bool {
        is_same(&Sha256::digest(typed).into(), &self.digest)
    }

    /// Read by no script, and sent by no other site.
    pub(crate) fn set_cookie(&self) -> String {
        format!("{COOKIE}={}; HttpOnly; SameSite=Strict; Path=/", self.cookie)
    }

    fn is_in(&self, headers: &HeaderMap) -> bool {
        let bearer = text(headers, &header::AUTHORIZATION).strip_prefix("Bearer ");
        let mut cookies = text(headers, &header::COOKIE).split(';').map(str::trim);
        let cookie = cookies.find_map(|pair| pair.strip_prefix(COOKIE)?.strip_prefix('='));
        let digest = |text: &str| Sha256::digest(text).into();
        bearer.is_some_and(|typed| self.is_secret(typed))
            || cookie.is_some_and(|sent| is_same(&digest(sent), &digest(&self.cookie)))
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Takes the same time wherever the digests differ.
fn is_same(one: &[u8; 32], other: &[u8; 32]) -> bool {
    one.iter().zip(other).fold(0, |differences, (a, b)| differences | (a ^ b)) == 0
}

/// A request that is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) reason: &'static str,
}

/// What the checks depend on.
#[derive(Clone, Debug)]
pub(crate) struct Guard {
    /// Where the server listens.
    pub(crate) address: IpAddr,
    pub(crate) token: Option<Token>,
}

impl Guard {
    /// Why a request is refused, before its path is looked at.
    pub(crate) fn refusal(
        &self,
        method: &Method,
        path: &str,
        headers: &HeaderMap,
    ) -> Option<Refusal> {
        let refuse = |status, reason| Some(Refusal { status, reason });
        let host = text(headers, &header::HOST);
        if self.address.is_loopback() && !is_own_name(host) {
            return refuse(
                StatusCode::FORBIDDEN,
                "this page is reached by the address of this machine",
            );
        }
        let origin = headers.get(header::ORIGIN).map(|_| text(headers, &header::ORIGIN));
        let is_own = |origin: &str| origin.strip_prefix("http://") == Some(host);
        let site = text(headers, &HeaderName::from_static("sec-fetch-site"));
        let mode = text(headers, &HeaderName::from_static("sec-fetch-mode"));
        let is_reading = [Method::GET, Method::HEAD].contains(method);
        let is_foreign = origin.is_some_and(|origin| !is_own(origin))
            || !(["", "same-origin", "none"].contains(&site) || is_reading && mode == "navigate")
            || headers.contains_key(header::UPGRADE);
        if is_foreign || !is_reading && origin.is_none() {
            return refuse(StatusCode::FORBIDDEN, "requests of other sites are not answered");
        }
        let is_open = path == "/login" || path.starts_with("/assets/");
        match &self.token {
            Some(token) if !is_open && !token.is_in(headers) => {
                refuse(StatusCode::UNAUTHORIZED, "a token is needed")
            }
            Some(_) | None => None,
        }
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Whether a host, with or without a port, is a loopback address or `localhost`.
fn is_own_name(host: &str) -> bool {
    let is_port = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let name = match host.rsplit_once(':') {
        Some((name, port)) if is_port(port) && !name.ends_with(':') => name,
        _ => host,
    };
    let name = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
    name == "localhost" || name.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let header = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), value.parse().unwrap())
        };
        pairs.iter().map(header).collect()
    }

    #[test]
    fn only_names_of_this_machine_are_hosts() {
        for own in ["localhost", "localhost:7431", "127.0.0.1:1", "[::1]:80", "127.8.8.8"] {
            assert!(is_own_name(own), "{own}");
        }
        let foreign = ["evil.example", "127.0.0.1.evil.example", "", "192.168.0.1", "localhost:x"];
        for foreign in foreign {
            assert!(!is_own_name(foreign), "{foreign}");
        }
    }

    #[test]
    fn a_token_is_needed_and_never_shown() {
        let token = Token::new("abc");
        let guard = Guard { address: IpAddr::from([0, 0, 0, 0]), token: Some(token.clone()) };
        let check = |pairs: &[_], path| guard.refusal(&Method::GET, path, &headers(pairs));
        assert_eq!(check(&[], "/").unwrap().status, StatusCode::UNAUTHORIZED);
        assert_eq!(check(&[], "/login"), None);
        assert_eq!(check(&[("authorization", "Bearer abc")], "/"), None);
        assert!(check(&[("authorization", "Bearer ab")], "/").is_some());
        let cookie = token.set_cookie();
        let sent: &'static str = cookie.split(';').next().unwrap().to_owned().leak();
        assert_eq!(check(&[("cookie", sent)], "/"), None);
        assert!(!cookie.contains("abc") && !format!("{token:?}").contains("abc"));
    }

    #[test]
    fn links_from_elsewhere_are_followed_and_nothing_else() {
        let guard = Guard { address: IpAddr::from([127, 0, 0, 1]), token: None };
        let own = ("host", "127.0.0.1:7431");
        let check = |method, pairs: &[_]| guard.refusal(&method, "/", &headers(pairs)).is_none();
        let cross = ("sec-fetch-site", "cross-site");
        assert!(check(Method::GET, &[own]));
        assert!(check(Method::GET, &[own, cross, ("sec-fetch-mode", "navigate")]));
        assert!(!check(Method::GET, &[own, cross, ("sec-fetch-mode", "cors")]));
        assert!(!check(Method::POST, &[own]), "a form of our own names its origin");
        assert!(check(Method::POST, &[own, ("origin", "http://127.0.0.1:7431")]));
        assert!(!check(Method::POST, &[own, ("origin", "null")]));
        assert!(!check(Method::GET, &[own, ("upgrade", "websocket")]));
    }
}
