//! A reply on its way out, one `write()` at a time.

use std::io::{self, Write as _};
use std::rc::Rc;

use mio::net::TcpStream;

use crate::clock::{Clock, Moment};
use crate::service::{Next, Reply, Service, Written};

/// A reply and how far it has got.
#[derive(Debug)]
pub(crate) enum Sending<A> {
    Plain { bytes: Rc<Vec<u8>>, sent: usize },
    Generated(A),
}

/// What one attempt to write did.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wrote {
    Some,
    All,
    NotBefore(Moment),
    /// The mode has nothing to write yet.
    Nothing,
}

impl<A> Sending<A> {
    pub(crate) fn plain(bytes: Vec<u8>) -> Self {
        Self::Plain { bytes: Rc::new(bytes), sent: 0 }
    }

    /// Makes one `write()`, if there is one to make and it is due.
    pub(crate) fn write<S>(
        &mut self,
        stream: &mut TcpStream,
        service: &mut S,
        clock: &Clock,
        room_since: Option<Moment>,
    ) -> io::Result<Wrote>
    where
        S: Service<Answer = A>,
    {
        let answer = match self {
            Self::Plain { bytes, sent } => {
                *sent += stream.write(&bytes[*sent..])?;
                return Ok(if *sent < bytes.len() { Wrote::Some } else { Wrote::All });
            }
            Self::Generated(answer) => answer,
        };
        let next = match service.next(answer) {
            Next::Write(next) => next,
            Next::Wait => return Ok(Wrote::Nothing),
            Next::End => return Ok(Wrote::All),
        };
        let now = || if S::KEEPS_TRUTH { clock.now() } else { Moment::default() };
        let before = now();
        if let Some(due) = next.due.filter(|due| before < *due) {
            return Ok(Wrote::NotBefore(due));
        }
        let bytes = stream.write(next.bytes)?;
        let after = now();
        service.wrote(answer, &Written { bytes, before, after, room_since });
        Ok(Wrote::Some)
    }
}

impl<A> From<Reply<A>> for Sending<A> {
    fn from(reply: Reply<A>) -> Self {
        match reply {
            Reply::Plain(bytes) => Self::Plain { bytes, sent: 0 },
            Reply::Generated(answer) => Self::Generated(answer),
        }
    }
}
