//! Servers that are put up: well, badly, and hostile ones. The servers are this executable itself,
//! behind shells that give them their manners.

#![expect(clippy::unwrap_used, reason = "the functions that tests share may fail as the tests do")]

mod commands;
mod container;
mod guard;
mod process;
mod stand_in;
