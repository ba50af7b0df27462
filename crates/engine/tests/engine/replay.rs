//! A live run and its replay under virtual time make the same steps.

use std::collections::HashMap;

use inferometer_engine::physics::Front;
use inferometer_engine::scheduler::blocks::PromptHasher;
use inferometer_engine::scheduler::{
    HashedPrompt, Listener, Scheduler, SchedulerRequest, Step, StopRules,
};
use inferometer_engine::{ApiProcess, EngineOptions, ServeOptions};
use serde::Deserialize;

use crate::client::{Engine, request_text};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Arrival(Box<Arrival>),
    Abort { at_ns: u64, id: u64 },
    Step(Logged),
}

#[derive(Debug, Deserialize)]
struct Arrival {
    at_ns: u64,
    id: u64,
    prompt_tokens: u32,
    prompt_hashes: Vec<u64>,
    prompt_rest: PromptHasher,
    answer_seed: u64,
    min_tokens: u32,
    eos_at: Option<u32>,
    stop_at: Option<u32>,
    max_tokens: u32,
    priority: i32,
}

impl Arrival {
    fn request(self) -> SchedulerRequest {
        SchedulerRequest {
            id: self.id,
            prompt: HashedPrompt {
                tokens: self.prompt_tokens,
                hashes: self.prompt_hashes,
                rest: self.prompt_rest,
            },
            answer_seed: self.answer_seed,
            stop: StopRules {
                min_tokens: self.min_tokens,
                eos_at: self.eos_at,
                stop_at: self.stop_at,
                max_tokens: self.max_tokens,
            },
            priority: self.priority,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Logged {
    ordinal: u64,
    began_ns: u64,
    ends_ns: u64,
    scheduled: Vec<(u64, u32)>,
    preempted: Vec<u64>,
    admitted: Vec<(u64, u32)>,
}

#[derive(Default)]
struct Steps(Vec<Logged>);

impl Listener for Steps {
    fn step_began(&mut self, step: &Step) {
        self.0.push(Logged {
            ordinal: step.ordinal,
            began_ns: step.began_ns,
            ends_ns: step.ends_ns,
            scheduled: step.scheduled.clone(),
            preempted: step.preempted.clone(),
            admitted: step.admitted.clone(),
        });
    }
}

/// Prompts that share beginnings, by token ids.
fn prompt(number: u32) -> Vec<u32> {
    let shared = (0..32 * (number % 3)).map(|at| 100 + at);
    shared.chain((0..20 + 37 * number).map(|at| 1_000 + number * 100 + at % 90)).collect()
}

fn body(number: u32) -> String {
    let ids: Vec<String> = prompt(number).iter().map(u32::to_string).collect();
    let fields = if number.is_multiple_of(2) { "" } else { r#","ignore_eos":true"# };
    let (ids, tokens) = (ids.join(","), 20 + 13 * number);
    format!(r#"{{"prompt":[{ids}],"max_tokens":{tokens},"stream":true{fields}}}"#)
}

const CLIENTS: u32 = 24;

#[test]
fn a_live_run_can_be_replayed_step_by_step() {
    let mut serve = ServeOptions { speed: 20.0, log_steps: true, ..ServeOptions::default() };
    // Few blocks, so that requests wait for each other and lose what they had.
    serve.profile.scheduler.blocks = 120;
    serve.profile.scheduler.max_num_batched_tokens = 256;
    let scheduler = serve.profile.scheduler.clone();
    let time = serve.profile.step_time(7);
    let engine = Engine::start(EngineOptions { serve, seed: 7, ..EngineOptions::default() });
    std::thread::scope(|scope| {
        for number in 0..CLIENTS {
            let engine = &engine;
            scope.spawn(move || {
                let mut client = engine.client();
                client.send(request_text("POST", "/v1/completions", &body(number)).as_bytes());
                if number % 6 == 5 {
                    client.take_through(b"data: ");
                    client.leave();
                } else {
                    assert_eq!(client.response().status, 200);
                }
            });
        }
    });
    engine.truth_at_rest();
    let log = engine.client().get("/steps");
    let mut replayed = Scheduler::new(scheduler, time);
    let mut steps = Steps::default();
    let mut logged = Vec::new();
    for line in log.text().lines() {
        match serde_json::from_str(line).unwrap() {
            Line::Arrival(arrival) => {
                replayed.submit(arrival.at_ns, arrival.request(), &mut steps).unwrap();
            }
            Line::Abort { at_ns, id } => assert!(replayed.abort(at_ns, id, &mut steps)),
            Line::Step(step) => logged.push(step),
        }
    }
    replayed.advance(u64::MAX, &mut steps);
    assert!(100 < logged.len(), "{}", logged.len());
    for (live, again) in logged.iter().zip(&steps.0) {
        assert_eq!(live, again);
    }
    assert_eq!(logged.len(), steps.0.len());
}

/// Gives each token the moment at which the API process has handed it out.
struct Wire {
    process: ApiProcess,
    due_ns: HashMap<u64, Vec<u64>>,
}

impl Listener for Wire {
    fn token(&mut self, id: u64, _index: u32, at_ns: u64) {
        let due_ns = self.process.hand_out(id, at_ns);
        self.due_ns.entry(id).or_default().push(due_ns);
    }
}

#[test]
fn tokens_leave_live_when_virtual_time_has_them_leave() {
    let mut serve = ServeOptions { log_steps: true, ..ServeOptions::default() };
    // Requests get through at once, so the log has all that the API process was told.
    serve.profile.front = Front { per_output_token_ns: 400_000, ..Front::IMMEDIATE };
    let (front, scheduler) = (serve.profile.front, serve.profile.scheduler.clone());
    let time = serve.profile.step_time(7);
    let engine = Engine::start(EngineOptions { serve, seed: 7, ..EngineOptions::default() });
    std::thread::scope(|scope| {
        for number in 0..6 {
            let engine = &engine;
            scope.spawn(move || {
                let mut client = engine.client();
                let text = request_text("POST", "/v1/completions", &body(number));
                client.send(text.as_bytes());
                assert_eq!(client.response().status, 200);
            });
        }
    });
    let truth = engine.truth_at_rest();
    let log = engine.client().get("/steps");
    let mut replayed = Scheduler::new(scheduler, time);
    let mut wire = Wire { process: ApiProcess::new(front), due_ns: HashMap::new() };
    for line in log.text().lines() {
        if let Line::Arrival(arrival) = serde_json::from_str(line).unwrap() {
            replayed.submit(arrival.at_ns, arrival.request(), &mut wire).unwrap();
        }
    }
    replayed.advance(u64::MAX, &mut wire);
    let live = truth.requests.iter().map(|request| {
        request.writes.iter().filter(|write| 0 < write.tokens).map(|write| write.due_ns.unwrap())
    });
    let mut live: Vec<Vec<u64>> = live.map(Iterator::collect).collect();
    let mut again: Vec<Vec<u64>> = wire.due_ns.into_values().collect();
    live.sort_unstable();
    again.sort_unstable();
    // The two clocks began at different moments.
    let began_ns = live[0][0] - again[0][0];
    again.iter_mut().flatten().for_each(|due_ns| *due_ns += began_ns);
    assert_eq!(live, again);
    let lasts = live.iter().filter_map(|due_ns| due_ns.last());
    assert_eq!(lasts.count(), 6);
}
