//! The log of a run is all that a replay of it needs.

use serde::Deserialize;

use super::*;
use crate::scheduler::ConstantStep;
use crate::scheduler::blocks::PromptHasher;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Arrival(Box<Logged>),
    Abort { at_ns: u64, id: u64 },
    Step(Parts),
}

#[derive(Debug, Deserialize)]
struct Logged {
    at_ns: u64,
    id: u64,
    prompt_tokens: u32,
    prompt_hashes: Vec<u64>,
    prompt_rest: PromptHasher,
    answer_seed: u64,
    max_tokens: u32,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Parts {
    began_ns: u64,
    ends_ns: u64,
    scheduled: Vec<(u64, u32)>,
    preempted: Vec<u64>,
    admitted: Vec<(u64, u32)>,
}

#[derive(Default)]
struct Steps(Vec<Parts>);

impl Listener for Steps {
    fn step_began(&mut self, step: &Step) {
        let Step { began_ns, ends_ns, scheduled, preempted, admitted, .. } = step.clone();
        self.0.push(Parts { began_ns, ends_ns, scheduled, preempted, admitted });
    }
}

impl Logged {
    fn request(self) -> SchedulerRequest {
        SchedulerRequest {
            id: self.id,
            prompt: HashedPrompt {
                tokens: self.prompt_tokens,
                hashes: self.prompt_hashes,
                rest: self.prompt_rest,
            },
            answer_seed: self.answer_seed,
            stop: StopRules::after(self.max_tokens),
            priority: 0,
        }
    }
}

/// Few blocks, so that requests wait for each other and lose what they had.
fn tight() -> SchedulerConfig {
    SchedulerConfig { blocks: 24, max_num_seqs: 6, ..SchedulerConfig::default() }
}

#[test]
fn a_run_with_preemptions_and_departures_is_replayed_from_its_log_alone() {
    let mut core = core_of(tight(), Front::IMMEDIATE);
    let keys: Vec<FlightKey> = (0..12)
        .zip(0..)
        .map(|(slot, number)| {
            arrive(&mut core, slot, u64::from(number) * STEP / 3, 50 + 9 * number)
        })
        .collect();
    // The wall is looked at now and then, never at the moment of a step.
    for round in 0..80_u64 {
        woken(&mut core, round * 17 * STEP / 2 + 77);
        if round == 3 {
            assert!(core.abandon(keys[2], at(round * 17 * STEP / 2 + 99)).is_some());
        }
    }
    let text = String::from_utf8(core.events.log.as_ref().unwrap().text()).unwrap();
    let mut again = Scheduler::new(tight(), ConstantStep(STEP));
    let mut steps = Steps::default();
    let mut logged = Vec::new();
    for line in text.lines() {
        match serde_json::from_str(line).unwrap() {
            Line::Arrival(arrival) => {
                again.submit(arrival.at_ns, arrival.request(), &mut steps).unwrap();
            }
            Line::Abort { at_ns, id } => assert!(again.abort(at_ns, id, &mut steps)),
            Line::Step(step) => logged.push(step),
        }
    }
    again.advance(u64::MAX, &mut steps);
    assert!(logged.iter().any(|step| !step.preempted.is_empty()), "nobody lost anything");
    // Answers are found again after their blocks were lost: what follows the prompt counts.
    let spared = |(_, cached): &(u64, u32)| 48 <= *cached;
    assert!(logged.iter().any(|step| step.admitted.iter().any(spared)), "no answer was found");
    assert!(100 < logged.len(), "{}", logged.len());
    assert_eq!(logged, steps.0);
}
