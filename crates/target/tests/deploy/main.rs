//! Servers that are put up: well, badly, and hostile ones. The servers are this executable itself,
//! behind shells that give them their manners.

mod process;
mod stand_in;
