//! What one stream in flight costs this process.

use inferometer_model::Moment;
use serde::{Deserialize, Serialize};

use super::TrueAnswer;
use super::fidelity::flight;

/// One look at the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemorySample {
    pub at: Moment,
    pub resident_bytes: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StreamMemory {
    /// Streams that were to be in flight at once.
    pub streams: u32,
    /// Streams that the engine really had at the moment of the look.
    pub in_flight: u64,
    pub resident_bytes_before: u64,
    pub resident_bytes: Option<u64>,
    /// The difference, for each stream in flight; `None` where memory cannot be looked at.
    pub bytes_per_stream: Option<f64>,
}

impl StreamMemory {
    /// Takes the look at which the engine had the most streams, and of several such the largest.
    pub fn of(
        streams: u32,
        resident_bytes_before: u64,
        looks: &[MemorySample],
        truths: &[TrueAnswer],
    ) -> Self {
        let counted = looks.iter().map(|look| (in_flight_at(look.at, truths), look.resident_bytes));
        let best = counted.max().filter(|(in_flight, _)| 0 < *in_flight);
        Self {
            streams,
            in_flight: best.map_or(0, |(in_flight, _)| in_flight),
            resident_bytes_before,
            resident_bytes: best.map(|(_, resident)| resident),
            bytes_per_stream: best.map(|(in_flight, resident)| {
                resident.saturating_sub(resident_bytes_before) as f64 / in_flight as f64
            }),
        }
    }
}

fn in_flight_at(at: Moment, truths: &[TrueAnswer]) -> u64 {
    let at_ns = at.as_nanos();
    let flights = truths.iter().filter_map(flight);
    flights.filter(|flight| flight.from_ns <= at_ns && at_ns < flight.to_ns).count() as u64
}

#[cfg(test)]
mod tests {
    use inferometer_model::RequestId;

    use super::*;
    use crate::fixture::ms;

    fn look(at: u64, resident_bytes: u64) -> MemorySample {
        MemorySample { at: ms(at), resident_bytes }
    }

    #[test]
    fn the_look_with_the_most_streams_counts() {
        let answer = |id, received, last| TrueAnswer {
            id: RequestId(id),
            received: ms(received),
            events: vec![ms(last)],
        };
        let truths = [answer(0, 10, 100), answer(1, 20, 110)];
        let looks = [look(5, 9_000), look(15, 2_000), look(30, 4_000), look(60, 5_000)];
        let memory = StreamMemory::of(3, 1_000, &looks, &truths);
        assert_eq!((memory.streams, memory.in_flight), (3, 2));
        assert_eq!(memory.resident_bytes, Some(5_000));
        assert_eq!(memory.bytes_per_stream, Some(2_000.0));
    }

    #[test]
    fn without_a_look_nothing_is_known() {
        let memory = StreamMemory::of(3, 1_000, &[look(5, 9_000)], &[]);
        assert_eq!((memory.in_flight, memory.bytes_per_stream), (0, None));
    }
}
