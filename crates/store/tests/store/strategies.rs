//! Arbitrary entries: every value that the types allow, sensible or not.

use std::time::Duration;

use inferometer_model::answer::{Grade, Validity};
use inferometer_model::journal::{
    ClientFacts, ClockMapping, DialFailure, Dialling, LagHistogram, NotSent, RunStop,
    StartedRequest,
};
use inferometer_model::outcome::{Cause, Stage};
use inferometer_model::record::{
    Carried, ConnectionFacts, Dial, DoneMark, Event, Finish, FinishReason, Read, RequestedLengths,
    ResponseHead, ServerReport, SessionPlace, Speculation, Usage,
};
use inferometer_model::{
    Ending, JournalEntry, Moment, Outcome, RequestId, RequestRecord, RunEnding,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

pub(crate) fn entries(count_max: usize) -> impl Strategy<Value = Vec<JournalEntry>> {
    vec(entry(), 0..count_max)
}

fn entry() -> impl Strategy<Value = JournalEntry> {
    prop_oneof![
        (request(), moment(), moment(), asked()).prop_map(|(id, intended, admitted, asked)| {
            JournalEntry::Started(StartedRequest { id, intended, admitted, asked })
        }),
        record().prop_map(|record| JournalEntry::Ended(Box::new(record))),
        (request(), any::<u64>(), cause(), moment()).prop_map(|(first, count, cause, at)| {
            JournalEntry::NotSent(NotSent { first, count, cause, at })
        }),
        run_ending().prop_map(JournalEntry::RunEnded),
    ]
}

pub(crate) fn record() -> impl Strategy<Value = RequestRecord> {
    let sending = (request(), any::<u32>(), moment(), moment(), option::of(moment()), asked());
    let answer = (option::of(connection()), option::of(head()), vec(read(), 0..5));
    let usage = (option::of(usage()), option::of(report()));
    let content = (vec(event(), 0..5), any::<u32>(), usage, vec(finish(), 0..3));
    let end = (any::<bool>(), any::<u32>(), option::of(any::<String>()), ending(), grade());
    (sending, answer, content, end).prop_map(|(sending, answer, content, end)| {
        let (id, attempt, intended, admitted, sent, asked) = sending;
        let (connection, head, reads) = answer;
        let (events, comments, (usage, server), finishes) = content;
        let (seen, events_after, other_model, ending, grade) = end;
        RequestRecord {
            id,
            attempt,
            intended,
            admitted,
            sent,
            asked,
            connection,
            head,
            reads,
            events,
            comments,
            usage,
            server: server.map(Box::new),
            finishes,
            done: DoneMark { seen, events_after },
            other_model,
            ending,
            grade,
            answer: None,
        }
    })
}

fn grade() -> impl Strategy<Value = Option<Grade>> {
    let validity =
        option::of(select(&[Validity::Valid, Validity::Cut, Validity::BadArguments][..]));
    let parts = (validity, option::of(any::<bool>()), option::of(any::<u32>()));
    option::of(parts.prop_map(|(validity, is_correct, question)| Grade {
        validity,
        is_correct,
        question,
    }))
}

fn moment() -> impl Strategy<Value = Moment> {
    any::<u64>().prop_map(Moment::from_nanos)
}

fn request() -> impl Strategy<Value = RequestId> {
    any::<u64>().prop_map(RequestId)
}

fn asked() -> impl Strategy<Value = RequestedLengths> {
    let session = prop_oneof![Just(SessionPlace::default()), session_place()];
    (any::<u32>(), any::<u32>(), any::<u16>(), any::<u16>(), session).prop_map(
        |(input_tokens, output_tokens, part, turn, session)| RequestedLengths {
            input_tokens,
            output_tokens,
            part,
            turn,
            session,
        },
    )
}

fn session_place() -> impl Strategy<Value = SessionPlace> {
    let turn = || option::of(any::<u16>());
    (any::<u16>(), turn(), turn(), any::<u32>()).prop_map(
        |(requests, after, context, shared_tokens)| SessionPlace {
            requests,
            after,
            context,
            shared_tokens,
        },
    )
}

fn connection() -> impl Strategy<Value = ConnectionFacts> {
    let dial = (moment(), moment(), option::of(moment()))
        .prop_map(|(started, connected, secured)| Dial { started, connected, secured });
    (any::<u32>(), any::<bool>(), option::of(dial))
        .prop_map(|(ordinal, reused, dial)| ConnectionFacts { ordinal, reused, dial })
}

fn head() -> impl Strategy<Value = ResponseHead> {
    (any::<u16>(), any::<u32>(), any::<bool>()).prop_map(|(status, read, streamed)| ResponseHead {
        status,
        read,
        streamed,
    })
}

fn read() -> impl Strategy<Value = Read> {
    (option::of(moment()), moment(), moment(), any::<u32>(), any::<bool>()).prop_map(
        |(kernel, user, turn, bytes, drained)| Read { kernel, user, turn, bytes, drained },
    )
}

fn event() -> impl Strategy<Value = Event> {
    let carried = any::<u16>().prop_map(Carried::from_bits_truncate);
    (any::<u32>(), any::<u16>(), carried, option::of(any::<u32>()), any::<u32>()).prop_map(
        |(read, choice, carried, tokens, text_bytes)| Event {
            read,
            choice,
            carried,
            tokens,
            text_bytes,
        },
    )
}

fn usage() -> impl Strategy<Value = Usage> {
    let count = || option::of(any::<u64>());
    (count(), count(), count()).prop_map(|(prompt_tokens, completion_tokens, cached_tokens)| {
        Usage { prompt_tokens, completion_tokens, cached_tokens }
    })
}

fn report() -> impl Strategy<Value = ServerReport> {
    let time = || option::of(any::<u64>().prop_map(Duration::from_nanos));
    let count = || option::of(any::<u64>());
    let speculation = (count(), count(), any::<u64>(), vec(any::<u64>(), 0..4)).prop_map(
        |(steps, drafted, accepted, histogram)| Speculation { steps, drafted, accepted, histogram },
    );
    (time(), time(), time(), count(), option::of(speculation), any::<u32>()).prop_map(
        |(queue, prefill, decode, reasoning_tokens, speculation, dropped)| ServerReport {
            queue,
            prefill,
            decode,
            reasoning_tokens,
            speculation,
            dropped,
        },
    )
}

fn finish() -> impl Strategy<Value = Finish> {
    let reason = prop_oneof![
        select(vec!["stop", "length", "tool_calls", "content_filter"]).prop_map(str::to_owned),
        any::<String>(),
    ];
    (any::<u16>(), reason)
        .prop_map(|(choice, reason)| Finish { choice, reason: FinishReason::parse(&reason) })
}

fn ending() -> impl Strategy<Value = Ending> {
    let outcome = select(Outcome::all().collect::<Vec<_>>());
    (outcome, moment(), stage(), option::of(cause()), option::of(any::<String>())).prop_map(
        |(outcome, at, stage, cause, message)| Ending { outcome, at, stage, cause, message },
    )
}

fn stage() -> impl Strategy<Value = Stage> {
    select(vec![
        Stage::Connect,
        Stage::Tls,
        Stage::Headers,
        Stage::FirstToken,
        Stage::Stream,
        Stage::End,
    ])
}

fn cause() -> impl Strategy<Value = Cause> {
    select(vec![
        Cause::Refused,
        Cause::Unreachable,
        Cause::Reset,
        Cause::StalePool,
        Cause::ClientResource,
        Cause::Redirect,
        Cause::ContentType,
        Cause::ContentEncoding,
        Cause::Headers,
        Cause::BadFraming,
        Cause::BadJson,
        Cause::JsonTooDeep,
        Cause::LineTooLarge,
        Cause::EventTooLarge,
        Cause::BodyTooLarge,
        Cause::ErrorEvent,
        Cause::NoFinishReason,
        Cause::NoFinalChunk,
        Cause::UnexpectedAnswer,
        Cause::Certificate,
        Cause::RunStopped,
        Cause::RunCrashed,
    ])
}

fn run_ending() -> impl Strategy<Value = RunEnding> {
    let stop = select(vec![
        RunStop::PlanDone,
        RunStop::Drained,
        RunStop::Cut,
        RunStop::Unauthorized,
        RunStop::Recovered,
    ]);
    (option::of(moment()), moment(), stop, client())
        .prop_map(|(began, at, stop, client)| RunEnding { began, at, stop, client })
}

fn client() -> impl Strategy<Value = ClientFacts> {
    let mapping =
        (any::<u64>(), any::<u64>(), any::<u64>()).prop_map(|(estimates, error_ns_max, jumps)| {
            ClockMapping { estimates, error_ns_max, jumps }
        });
    let lag = (vec(any::<u64>(), 0..33), any::<u64>())
        .prop_map(|(counts, max_ns)| LagHistogram { counts, max_ns });
    let outcome = select(Outcome::all().collect::<Vec<_>>());
    let failure = (outcome, option::of(cause()), any::<u32>())
        .prop_map(|(outcome, cause, count)| DialFailure { outcome, cause, count });
    let dialling = (any::<u32>(), any::<u64>(), vec(any::<u64>(), 0..9), vec(failure, 0..3))
        .prop_map(|(wanted, took_ns, connect_ns, failures)| Dialling {
            wanted,
            took_ns,
            connect_ns,
            failures,
        });
    let facts =
        (option::of(mapping), lag, any::<u64>(), option::of(any::<u32>()), option::of(dialling));
    facts.prop_map(|(mapping, loop_lag, journal_waits, driver_cpu_us, dialling)| ClientFacts {
        drivers: 1,
        mapping,
        loop_lag,
        journal_waits,
        cpu: None,
        driver_cpu_us,
        dialling,
    })
}
