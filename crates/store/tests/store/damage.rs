//! Journals that were cut, changed or made up.

use inferometer_model::record::RequestedLengths;
use inferometer_model::{JournalEntry, Moment, RequestId, RequestRecord, StartedRequest};
use inferometer_store::{Damage, DamagedFrame, Integrity, StoreError, Tail};
use proptest::prelude::*;

use crate::samples::{
    ended, journal_bytes, not_sent, read_journal, record, run_ended, started, whole_run,
};
use crate::strategies;

const HEADER_BYTES: usize = 10;

/// Where each frame begins, and where the last one ends.
fn frame_offsets(entries: &[JournalEntry]) -> Vec<usize> {
    (0..=entries.len()).map(|count| journal_bytes(&entries[..count]).len()).collect()
}

/// Whether `found` is `written` with some entries left out.
fn is_part_of(found: &[JournalEntry], written: &[JournalEntry]) -> bool {
    let mut rest = written.iter();
    found.iter().all(|entry| rest.any(|other| other == entry))
}

/// Faults: 86.
#[test]
fn a_journal_cut_at_any_byte_gives_every_whole_entry_before_the_cut() {
    let entries = whole_run();
    let bytes = journal_bytes(&entries);
    let offsets = frame_offsets(&entries);
    for cut in 0..bytes.len() {
        let (read, integrity) = read_journal(&bytes[..cut]).unwrap();
        let whole = offsets.iter().filter(|offset| **offset <= cut).count().saturating_sub(1);
        assert_eq!(read, entries[..whole], "cut at {cut}");
        assert_eq!(integrity.damaged, [], "cut at {cut}");
        let at = if cut < HEADER_BYTES { 0 } else { offsets[whole] };
        let tail = if at == cut && HEADER_BYTES <= cut {
            Tail::Clean
        } else {
            Tail::Torn { at: at as u64, bytes: (cut - at) as u64 }
        };
        assert_eq!(integrity.tail, tail, "cut at {cut}");
    }
}

/// Faults: 87.
#[test]
fn any_flipped_bit_costs_one_entry_and_is_named() {
    let entries = whole_run();
    let bytes = journal_bytes(&entries);
    let offsets = frame_offsets(&entries);
    for bit in HEADER_BYTES * 8..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let (read, integrity) = read_journal(&flipped).unwrap();
        let hit = offsets.iter().filter(|offset| **offset <= bit / 8).count() - 1;
        let mut expected = entries.clone();
        expected.remove(hit);
        assert_eq!(read, expected, "bit {bit}");
        let offset = offsets[hit] as u64;
        let frame_bytes = (offsets[hit + 1] - offsets[hit]) as u64;
        if hit + 1 == entries.len() {
            assert_eq!(integrity.tail, Tail::Torn { at: offset, bytes: frame_bytes }, "bit {bit}");
        } else {
            let [damaged] = integrity.damaged[..] else { panic!("{integrity:?} at bit {bit}") };
            assert_eq!((damaged.offset, damaged.bytes), (offset, frame_bytes), "bit {bit}");
            assert_eq!(integrity.tail, Tail::Clean, "bit {bit}");
        }
    }
}

#[test]
fn a_flipped_bit_in_the_header_is_an_error_that_names_the_file() {
    let bytes = journal_bytes(&whole_run());
    for bit in 0..HEADER_BYTES * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let error = read_journal(&flipped).unwrap_err();
        assert!(error.to_string().starts_with("memory "), "{error}");
        // Without its one bit the version is zero, which no journal has.
        if 64 <= bit && bit != 65 {
            assert!(matches!(error, StoreError::NewerFormat { known: 2, .. }), "{error}");
        }
    }
}

#[test]
fn several_damaged_frames_in_a_row_are_passed_over() {
    let entries = whole_run();
    let offsets = frame_offsets(&entries);
    let mut bytes = journal_bytes(&entries);
    bytes[offsets[1]..offsets[4]].fill(0xff);
    let (read, integrity) = read_journal(&bytes).unwrap();
    assert_eq!(read, [&entries[..1], &entries[4..]].concat());
    let damaged = DamagedFrame {
        offset: offsets[1] as u64,
        bytes: (offsets[4] - offsets[1]) as u64,
        reason: Damage::Length,
    };
    assert_eq!(
        integrity,
        Integrity { damaged: vec![damaged], damaged_count: 1, tail: Tail::Clean }
    );
}

#[test]
fn a_long_record_without_its_length_does_not_hide_what_follows() {
    let event = record(0).events[0];
    let read = record(0).reads[0];
    let long = RequestRecord { events: vec![event; 5_000], reads: vec![read; 5_000], ..record(0) };
    let mut entries = vec![JournalEntry::Ended(Box::new(long))];
    entries.extend((1..2_000).map(ended));
    let mut bytes = journal_bytes(&entries);
    bytes[HEADER_BYTES + 3] = 1;
    let (found, integrity) = read_journal(&bytes).unwrap();
    assert_eq!(found, entries[1..]);
    assert_eq!(integrity.damaged_count, 1);
}

#[test]
fn a_tail_of_zeroes_is_torn() {
    // Some file systems grow a file before they write it.
    let mut bytes = journal_bytes(&whole_run());
    let whole = bytes.len();
    bytes.resize(whole + 200_000, 0);
    let (read, integrity) = read_journal(&bytes).unwrap();
    assert_eq!(read, whole_run());
    assert_eq!(integrity.tail, Tail::Torn { at: whole as u64, bytes: 200_000 });
}

#[test]
fn a_frame_inside_a_message_is_not_an_entry() {
    // A server's message is the text of a frame, and the frame around it loses its length.
    let forged = |id| {
        let small = StartedRequest {
            id: RequestId(id),
            intended: Moment::ZERO,
            admitted: Moment::ZERO,
            asked: RequestedLengths {
                input_tokens: 1,
                output_tokens: 1,
                part: 0,
                turn: 0,
                ..RequestedLengths::default()
            },
        };
        journal_bytes(&[JournalEntry::Started(small)]).split_off(HEADER_BYTES)
    };
    let message = (0..128).find_map(|id| String::from_utf8(forged(id)).ok()).unwrap();
    let mut hostile = RequestRecord { other_model: Some(message.clone()), ..record(0) };
    hostile.ending.message = Some(message.repeat(3));
    let entries = [started(0), JournalEntry::Ended(Box::new(hostile)), ended(1)];
    let mut bytes = journal_bytes(&entries);
    bytes[frame_offsets(&entries)[1] + 3] = 0xff;
    let (read, integrity) = read_journal(&bytes).unwrap();
    assert_eq!(read, [started(0), ended(1)]);
    assert_eq!(integrity.damaged[0].reason, Damage::Length);
}

#[test]
fn a_frame_moved_to_another_place_is_not_an_entry() {
    let bytes = journal_bytes(&[started(1), started(2)]);
    let frame_bytes = (bytes.len() - HEADER_BYTES) / 2;
    let (head, frames) = bytes.split_at(HEADER_BYTES);
    let (first, second) = frames.split_at(frame_bytes);
    let (read, _) = read_journal(&[head, second, first].concat()).unwrap();
    assert_eq!(read, []);
}

#[test]
fn the_description_of_damage_is_bounded() {
    let entries: Vec<JournalEntry> = (0..500).map(|id| not_sent(id, 1)).collect();
    let mut bytes = journal_bytes(&entries);
    for offset in frame_offsets(&entries).iter().step_by(2).take(200) {
        bytes[offset + 6] ^= 1;
    }
    let (read, integrity) = read_journal(&bytes).unwrap();
    assert_eq!(read.len(), 300);
    assert_eq!((integrity.damaged.len(), integrity.damaged_count), (100, 200));
}

#[test]
fn a_length_beyond_the_file_asks_for_no_memory() {
    let mut bytes = journal_bytes(&[run_ended()]);
    bytes[HEADER_BYTES..HEADER_BYTES + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    let (read, integrity) = read_journal(&bytes).unwrap();
    assert_eq!(read, []);
    assert_eq!(
        integrity.to_string(),
        format!("the last {} bytes, from byte 10 on, are incomplete", bytes.len() - 10)
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn changed_bytes_never_panic_and_never_invent_an_entry(
        entries in strategies::entries(8),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut bytes = journal_bytes(&entries);
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        if let Ok((read, _)) = read_journal(&bytes) {
            prop_assert!(is_part_of(&read, &entries));
        }
    }

    #[test]
    fn made_up_bytes_never_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..2_000)) {
        let _ = read_journal(&bytes);
        let header = &journal_bytes(&[])[..];
        bytes.splice(0..0, header.iter().copied());
        prop_assert_eq!(read_journal(&bytes).unwrap().0, []);
    }

    #[test]
    fn a_cut_gives_a_prefix(entries in strategies::entries(8), cut in any::<prop::sample::Index>()) {
        let bytes = journal_bytes(&entries);
        let (read, integrity) = read_journal(&bytes[..cut.index(bytes.len())]).unwrap();
        prop_assert!(entries.starts_with(&read));
        prop_assert_eq!(integrity.damaged_count, 0);
    }
}
