//! The table of checks.

use super::Limits;
use crate::delivered::{RATE_APART, RATE_APART_GRAVE};
use crate::little::LITTLE_APART;
use crate::warning::client::{CAPACITY_SHARE, CLIENT_MS, Limit, SENT_LATE_MS};
use crate::warning::machines::{CPU_FULL_SHARE, THROTTLED_SHARE};
use crate::warning::{CACHED_SHARE_GRAVE, ERRORS_SHARE, FOREIGN_SHARE_GRAVE};

/// What is asked of every run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckKind {
    CompleteRun,
    Errors,
    DeliveredLoad,
    SteadyState,
    LittlesLaw,
    SampleSize,
    SendLag,
    ClientLag,
    ArrivalWidth,
    ClientLoop,
    ClientCapacity,
    Clock,
    KernelStamps,
    Answerer,
    Stream,
    TokenCounts,
    InputLength,
    OutputLength,
    Cache,
    ServerRestart,
    ServerAlone,
    GpuSpeed,
    GpuAlone,
    ClientMachine,
}

struct Entry {
    kind: CheckKind,
    key: &'static str,
    title: &'static str,
    help: &'static str,
    /// Of its figure.
    unit: Option<&'static str>,
}

impl CheckKind {
    /// In the order in which they are asked.
    pub fn all() -> impl ExactSizeIterator<Item = Self> {
        TABLE.iter().map(|entry| entry.kind)
    }

    pub const fn key(self) -> &'static str {
        self.entry().key
    }

    /// A question that "yes" is good news to.
    pub const fn title(self) -> &'static str {
        self.entry().title
    }

    /// What is looked at, and what is made of it.
    pub const fn help(self) -> &'static str {
        self.entry().help
    }

    pub const fn unit(self) -> Option<&'static str> {
        self.entry().unit
    }

    /// Whether it is about the client, of which there is none in virtual time.
    pub(super) const fn is_of_client(self) -> bool {
        matches!(
            self,
            Self::SendLag
                | Self::ClientLag
                | Self::ArrivalWidth
                | Self::ClientLoop
                | Self::ClientCapacity
                | Self::Clock
                | Self::KernelStamps
                | Self::ClientMachine
        )
    }

    pub fn limits(self) -> Option<Limits> {
        let both = |limit: Limit| (Some(limit.degraded), Some(limit.invalid));
        let (degraded, invalid) = match self {
            Self::Errors => (Some(ERRORS_SHARE), Some(0.5)),
            Self::DeliveredLoad => (Some(RATE_APART), Some(RATE_APART_GRAVE)),
            Self::LittlesLaw => (Some(LITTLE_APART), None),
            Self::SendLag => both(SENT_LATE_MS),
            Self::ClientLag | Self::ArrivalWidth | Self::ClientLoop => both(CLIENT_MS),
            Self::ClientCapacity => both(CAPACITY_SHARE),
            Self::Cache => (Some(CACHED_SHARE_GRAVE), None),
            Self::ServerRestart => (None, Some(0.0)),
            Self::ServerAlone => (Some(FOREIGN_SHARE_GRAVE), None),
            Self::GpuSpeed => (Some(THROTTLED_SHARE), None),
            Self::GpuAlone => (Some(0.0), None),
            Self::ClientMachine => (Some(CPU_FULL_SHARE), None),
            Self::CompleteRun
            | Self::SteadyState
            | Self::SampleSize
            | Self::Clock
            | Self::KernelStamps
            | Self::Answerer
            | Self::Stream
            | Self::TokenCounts
            | Self::InputLength
            | Self::OutputLength => return None,
        };
        Some(Limits { degraded, invalid })
    }

    const fn entry(self) -> &'static Entry {
        &TABLE[self as usize]
    }
}

/// In the order of [`CheckKind`], by which an entry is found.
static TABLE: [Entry; 24] = [
    Entry {
        kind: CheckKind::CompleteRun,
        key: "complete-run",
        title: "Did the run go to its end?",
        help: "a run that was cut, or whose last requests were cut, is degraded; one that had \
               to give up, or in which nothing could end, is invalid",
        unit: None,
    },
    Entry {
        kind: CheckKind::Errors,
        key: "errors",
        title: "Did the requests succeed?",
        help: "the share of attempted requests that failed, without those that we cut",
        unit: Some("share"),
    },
    Entry {
        kind: CheckKind::DeliveredLoad,
        key: "delivered-load",
        title: "Was the load the one that was asked for?",
        help: "on an open loop the rate that left against the planned one, how it varies (the \
               index of dispersion), and the plan against its process; below 95 % of the slots \
               of a closed loop in use degrades; with a cap, what it held back",
        unit: Some("share"),
    },
    Entry {
        kind: CheckKind::SteadyState,
        key: "steady-state",
        title: "Did the run settle?",
        help: "MSER-5 and a trend test over requests in flight, output and TTFT; an open loop \
               that piles up requests beyond chance is degraded, other drifts are noted",
        unit: Some("s"),
    },
    Entry {
        kind: CheckKind::LittlesLaw,
        key: "littles-law",
        title: "Do arrivals, times and requests in flight agree?",
        help: "N = X·R, where requests that were lost, end before they begin or lie outside of \
               the run show; the server's gauges of running and waiting against N, which is noted",
        unit: Some("share"),
    },
    Entry {
        kind: CheckKind::SampleSize,
        key: "sample-size",
        title: "Are there enough requests?",
        help: "below 30 ok requests it is noted; percentiles have floors of their own",
        unit: Some("requests"),
    },
    Entry {
        kind: CheckKind::SendLag,
        key: "send-lag",
        title: "Did requests leave when they were due?",
        help: "p99 from when a request was let go to its first byte, on an open loop",
        unit: Some("ms"),
    },
    Entry {
        kind: CheckKind::ClientLag,
        key: "client-lag",
        title: "Did the client read in time?",
        help: "p99 of how long bytes lay in the kernel before they were read",
        unit: Some("ms"),
    },
    Entry {
        kind: CheckKind::ArrivalWidth,
        key: "arrival-width",
        title: "Is it known when each event came?",
        help: "p99 over all events of how much older they may be than their stamps, because \
               they were read together",
        unit: Some("ms"),
    },
    Entry {
        kind: CheckKind::ClientLoop,
        key: "client-loop",
        title: "Did the client keep turning?",
        help: "p99 of how late its loop woke; a pause above 100 ms, or 2 % of the processor \
               given to others, degrades; above 1,000 ms, or 10 %, is invalid",
        unit: Some("ms"),
    },
    Entry {
        kind: CheckKind::ClientCapacity,
        key: "client-capacity",
        title: "Had the client capacity to spare?",
        help: "the busiest second against what the client carries by its calibration; waiting \
               for the journal above 1 % of requests degrades; a machine out of descriptors, \
               ports or memory is invalid",
        unit: Some("share"),
    },
    Entry {
        kind: CheckKind::Clock,
        key: "clock",
        title: "Did the clock run evenly?",
        help: "a jump of the wall clock degrades; moments that are out of order beyond the \
               clock's error are invalid",
        unit: Some("times"),
    },
    Entry {
        kind: CheckKind::KernelStamps,
        key: "kernel-stamps",
        title: "Are arrivals stamped by the kernel?",
        help: "the share of reads with the kernel's stamp; less than all is noted",
        unit: Some("share"),
    },
    Entry {
        kind: CheckKind::Answerer,
        key: "answerer",
        title: "Did the one answer who was asked?",
        help: "another model's name in the answers is invalid; an unchecked certificate and \
               unused proxy variables are noted",
        unit: None,
    },
    Entry {
        kind: CheckKind::Stream,
        key: "stream",
        title: "Did the answers come as streams should?",
        help: "answers in one piece, without output, without `[DONE]` or going on after it are \
               noted",
        unit: None,
    },
    Entry {
        kind: CheckKind::TokenCounts,
        key: "token-counts",
        title: "Does the server count its tokens?",
        help: "usage that is missing, zero or unlike the stream is noted",
        unit: Some("requests"),
    },
    Entry {
        kind: CheckKind::InputLength,
        key: "input-length",
        title: "Are prompts as long as asked?",
        help: "the server's count off by more than 20 % on average is noted",
        unit: Some("share"),
    },
    Entry {
        kind: CheckKind::OutputLength,
        key: "output-length",
        title: "Are answers as long as asked?",
        help: "more than 10 % of answers off by more than 10 % is noted",
        unit: Some("share"),
    },
    Entry {
        kind: CheckKind::Cache,
        key: "cache",
        title: "Were new prompts new to the server?",
        help: "the share of the input from the prefix cache, by usage or by the server's \
               counters, where every prompt was to be new; above 5 % it is noted, and so are \
               prompts that were sent before",
        unit: Some("share"),
    },
    Entry {
        kind: CheckKind::ServerRestart,
        key: "server-restart",
        title: "Was it one server all the time?",
        help: "a counter that falls, or another process, is a restart; replicas that answer by \
               turns are noted",
        unit: Some("restarts"),
    },
    Entry {
        kind: CheckKind::ServerAlone,
        key: "server-alone",
        title: "Did the server work for this run alone?",
        help: "its totals of tokens against the client's; above 1 % it is noted, and fewer are \
               only noted",
        unit: Some("share"),
    },
    Entry {
        kind: CheckKind::GpuSpeed,
        key: "gpu-speed",
        title: "Did the GPUs run as fast as they can?",
        help: "the share of looks in which heat or a brake of the board held one back; a power \
               limit, 85 °C, memory that is 98 % full and GPUs that do nothing are noted",
        unit: Some("share"),
    },
    Entry {
        kind: CheckKind::GpuAlone,
        key: "gpu-alone",
        title: "Had the server its GPUs to itself?",
        help: "processes that came to its GPUs while the run went on",
        unit: Some("processes"),
    },
    Entry {
        kind: CheckKind::ClientMachine,
        key: "client-machine",
        title: "Had the client's machine room?",
        help: "the mean use of its processors; less than 512 MiB of memory left degrades too",
        unit: Some("share"),
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_finds_its_entry() {
        for (place, kind) in CheckKind::all().enumerate() {
            assert_eq!((kind.entry().kind, kind as usize), (kind, place));
        }
    }
}
