//! Tests of `uncertainty`.

mod doubt;
mod request_rates;
