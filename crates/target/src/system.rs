//! What machines are: this one by its own files and tools, and another by what its server says or
//! what we are told. What cannot be found out is absent, never guessed.

mod amd;
mod host;
pub(crate) mod listener;
mod nvidia;
mod server;
mod start_command;
mod told;
pub(crate) mod tool;

use inferometer_model::system::Machine;

pub use self::listener::serves_here;
pub use self::server::ask_server;
pub use self::start_command::gpus_used;
pub use self::told::{ServerInfo, TellError, tell};

/// This machine, without its GPUs: files only, and so in no time.
pub fn host() -> Machine {
    host::machine()
}

/// This machine with its GPUs, as the tools of their vendors tell. May take some seconds.
pub fn machine() -> Machine {
    let mut machine = host::machine();
    // Whoever has both kinds has them for different things; both are listed.
    nvidia::add_to(&mut machine);
    amd::add_to(&mut machine);
    machine
}
