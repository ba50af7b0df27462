//! Tests of `memory`.

use inferometer_model::RequestId;

use crate::calibration::*;
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
    let memory = StreamMemory::from_drives(3, 1_000, &looks, &truths);
    assert_eq!((memory.streams, memory.in_flight), (3, 2));
    assert_eq!(memory.resident_bytes, Some(5_000));
    assert_eq!(memory.bytes_per_stream, Some(2_000.0));
}

#[test]
fn without_a_look_nothing_is_known() {
    let memory = StreamMemory::from_drives(3, 1_000, &[look(5, 9_000)], &[]);
    assert_eq!((memory.in_flight, memory.bytes_per_stream), (0, None));
}
