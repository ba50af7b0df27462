//! Tests of `uncertainty`.

mod basis;
mod doubt;
mod fluidity;
mod request_rates;
