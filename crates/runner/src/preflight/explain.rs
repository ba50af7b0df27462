//! Why a probe failed, in words that say what to do.

use std::time::Duration;

use inferometer_load::answer::Failure as LoadFailure;
use inferometer_load::target::Target;
use inferometer_model::RequestRecord;
use inferometer_model::observations::HttpVersion;
use inferometer_model::outcome::{Cause, Outcome};
use inferometer_model::spec::Limits;

use crate::failure::{Failure, Refusal};
use crate::secrets::Secrets;

pub(super) const IS_IT_HTTP2: &str =
    "does this server speak HTTP/2? Most want HTTP/1.1: leave --http2 out";

pub(super) fn probe_failure(target: &Target, secrets: &Secrets, record: &RequestRecord) -> Failure {
    let ending = &record.ending;
    let path = target.base.path(&target.api.path(target.streaming, &target.model));
    let (outcome, cause) = (ending.outcome, ending.cause);
    let words = LoadFailure { outcome, cause, message: ending.message.clone() }.words();
    let failure = Failure::target(format!(
        "{}: a probe of {path} for model `{}` ended as {}: {words}",
        target.base, target.model, ending.outcome
    ));
    let status = record.head.map(|head| head.status);
    let failure = failure.passing_if(match status {
        Some(status) => super::is_of_starting(status),
        None => !matches!(outcome, Outcome::TlsError | Outcome::ProtocolError),
    });
    let failure = failure.refused(refusal(status, ending.message.as_deref()));
    match (status, ending.cause) {
        (Some(401 | 403), _) if secrets.has_key => {
            failure.hint("the server refused the key that was sent; is it the right one?")
        }
        (Some(401 | 403), _) => {
            failure.hint("the server wants a key: use --api-key-file FILE or OPENAI_API_KEY")
        }
        (Some(429 | 503), _) => failure
            .hint("the server is busy or still loading; wait until it answers, then run again"),
        (Some(404), _) => failure.hint(
            "either the path is wrong (give the base URL, with its prefix if it has one) \
             or the server does not serve that model (see --model)",
        ),
        (_, Some(Cause::ContentType)) => failure.hint(
            "this does not look like an inference API: a proxy or a login page may be in the way",
        ),
        (_, Some(Cause::Handshake)) => failure
            .hint("does this port speak TLS? A plain server wants http:// instead of https://"),
        (_, Some(Cause::Certificate)) => failure.hint(
            "the certificate must be valid for this host and trusted by this system \
             (SSL_CERT_FILE may name another store); --insecure measures without the check",
        ),
        (_, Some(Cause::BadFraming)) if target.http == HttpVersion::Http2 => {
            failure.hint(IS_IT_HTTP2)
        }
        _ => match met_limit(outcome, &target.limits) {
            Some((flag, limit)) => {
                failure.hint(format!("it was given {limit:?}; allow more with {flag}"))
            }
            None if target.http == HttpVersion::Http2 => failure.hint(IS_IT_HTTP2),
            None => failure.hint("nothing was measured; does the server answer a request by hand?"),
        },
    }
}

/// What an answer is about, where that is plain.
fn refusal(status: Option<u16>, said: Option<&str>) -> Option<Refusal> {
    match status {
        Some(401 | 403) => Some(Refusal::Key),
        // A path that is not there is answered so, too, and speaks of no model.
        Some(404) if said.is_some_and(|said| said.to_lowercase().contains("model")) => {
            Some(Refusal::Model)
        }
        Some(_) | None => None,
    }
}

/// The flag that sets the limit which was met, and its value.
fn met_limit(outcome: Outcome, limits: &Limits) -> Option<(&'static str, Duration)> {
    match outcome {
        Outcome::TimeoutConnect => Some(("--connect-timeout", limits.connect)),
        Outcome::TimeoutFirstToken => Some(("--first-token-timeout", limits.first_token)),
        Outcome::TimeoutIdle => Some(("--idle-timeout", limits.idle)),
        Outcome::TimeoutTotal => Some(("--total-timeout", limits.total)),
        Outcome::Ok
        | Outcome::HttpError
        | Outcome::Rejected
        | Outcome::StreamError
        | Outcome::Truncated
        | Outcome::ProtocolError
        | Outcome::TransportError
        | Outcome::TlsError
        | Outcome::DnsError
        | Outcome::Cancelled
        | Outcome::NotSent => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_that_is_not_served_is_told_from_a_path_that_is_not_there() {
        let said = Some("The model `x` does not exist.");
        assert_eq!(refusal(Some(404), said), Some(Refusal::Model));
        assert_eq!(refusal(Some(404), Some("Not Found")), None);
        assert_eq!(refusal(Some(404), None), None);
        assert_eq!(refusal(Some(500), said), None);
        assert_eq!(refusal(Some(401), None), Some(Refusal::Key));
        assert_eq!(refusal(None, said), None);
    }
}
