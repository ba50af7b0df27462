//! Tests of `uncertainty`.

mod doubt;
mod fluidity;
mod request_rates;
