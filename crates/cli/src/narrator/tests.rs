//! Against a tiny server that says what it is told to.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::JoinHandle;

use inferometer_model::spec::TargetTable;
use inferometer_report::document::plain;
use inferometer_report::narrative::facts::FactRow;
use inferometer_report::narrative::narrator::{Answer, Question};
use inferometer_report::narrative::{Author, Narrative, Sentence};
use serde_json::json;

use super::*;

const MODELS: &str = r#"{"object":"list","data":[{"id":"writer","object":"model"}]}"#;

/// Serves as many connections as there are answers; hands back what was asked.
struct Fake {
    address: SocketAddr,
    thread: JoinHandle<Vec<String>>,
}

impl Fake {
    fn saying(answers: Vec<(u16, String)>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let thread = std::thread::spawn(move || {
            answers.into_iter().map(|(status, body)| served(&listener, status, &body)).collect()
        });
        Self { address, thread }
    }

    fn base(&self) -> BaseUrl {
        format!("http://{}", self.address).parse().unwrap()
    }
}

/// Finding an address that answers opens a connection without a request; that one is passed over.
fn served(listener: &TcpListener, status: u16, body: &str) -> String {
    loop {
        let (stream, _) = listener.accept().unwrap();
        if stream.peek(&mut [0]).is_ok_and(|bytes| 0 < bytes) {
            return exchange(stream, status, body);
        }
    }
}

fn exchange(stream: TcpStream, status: u16, body: &str) -> String {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut asked = String::new();
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        asked.push_str(&line);
        if line.trim().is_empty() {
            break;
        }
    }
    let mut sent = vec![0; length];
    reader.read_exact(&mut sent).unwrap();
    asked.push_str(&String::from_utf8(sent).unwrap());
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n",
        body.len()
    );
    let mut stream = stream;
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    asked
}

fn saying(text: &str) -> String {
    json!({ "choices": [{ "message": { "role": "assistant", "content": text } }] }).to_string()
}

fn facts() -> Facts {
    let mut facts = Facts::default();
    for (users, throughput, ttft) in [(2, 97.72, 212.18), (4, 167.97, 115.15)] {
        let scenario = Some(format!("Scaling (c={users})"));
        let row = FactRow { scenario, concurrency: Some(users) };
        for (quantity, value) in [
            ("concurrency", f64::from(users)),
            ("output_throughput", throughput),
            ("per_user_throughput", throughput / f64::from(users)),
            ("ttft.mean", ttft),
            ("ttft.p99", ttft * 1.5),
        ] {
            facts.add(&row, "performance-summary", quantity, Some(value));
        }
    }
    facts
}

fn nobody() -> Interruption {
    Interruption::default()
}

fn without_key() -> Secrets {
    Secrets::typed(KEY_FLAG, None).unwrap()
}

fn rules() -> Narrative {
    let by_rules = Sentence { text: plain("By the rules."), facts: Vec::new() };
    Narrative {
        summary: vec![by_rules.clone()],
        uncertainties: vec![by_rules],
        ..Narrative::default()
    }
}

#[test]
fn what_holds_is_kept_and_the_rest_is_counted() {
    let said = "<think>TTFT is 1 ms.</think>Here is the report:\n\nSUMMARY\n\
                - Output throughput rises from 97.72 tok/s at c=2 to 167.97 tok/s at c=4.\n\
                - Output throughput falls from 97.72 tok/s at c=2 to 167.97 tok/s at c=4.\n\
                SCENARIO: Scaling (c=4)\n- Mean TTFT is 115.15 ms. The server is wonderful.\n";
    let fake = Fake::saying(vec![(200, MODELS.to_owned()), (200, saying(said))]);
    let narrator = Narrator::at(&fake.base(), &without_key()).unwrap();
    let facts = facts();
    let narration = narrate(&narrator, &facts, &nobody());
    let asked = fake.thread.join().unwrap();
    assert!(asked[1].starts_with("POST /v1/chat/completions "), "{}", asked[1]);
    assert!(asked[1].contains("\"model\":\"writer\"") && asked[1].contains("115.2"));
    let page = narration.narrative(&facts, rules());
    assert_eq!(page.summary.len(), 1);
    assert_eq!(page.scenarios["Scaling (c=4)"][0].text, plain("Mean TTFT is 115.15 ms."));
    assert_eq!(page.uncertainties, rules().uncertainties, "what is not certain stays");
    let Author::Model { name, kept, rejected, .. } = page.author else {
        panic!("{:?}", page.author)
    };
    assert_eq!((name.as_str(), kept, rejected.values().sum::<u32>()), ("writer", 2, 3));
}

fn whole(said: &str) -> Vec<Answer> {
    vec![Answer { question: Question::Whole, said: said.to_owned() }]
}

#[test]
fn the_same_page_is_made_again_without_asking() {
    let folder = tempfile::tempdir().unwrap();
    let facts = facts();
    assert_eq!(words(folder.path(), &facts, rules()), rules());
    let answers = whole("SUMMARY\n- Mean TTFT at c=4 is lower than at c=2.");
    let narration = Narration::new("writer", answers, None, &facts);
    store(folder.path(), &narration);
    assert_eq!(stored_narration(folder.path()), Ok(Some(narration.clone())));
    let page = words(folder.path(), &facts, rules());
    assert_eq!(page, narration.narrative(&facts, rules()));
    assert!(matches!(page.author, Author::Model { kept: 1, .. }));
}

#[test]
fn words_that_cannot_be_read_or_kept_leave_the_page_to_the_rules() {
    let folder = tempfile::tempdir().unwrap();
    let facts = facts();
    let silent = Narration::new("writer", Vec::new(), Some("it did not answer".to_owned()), &facts);
    let newer =
        json!({ "schema": 2, "model": "writer", "answers": [], "failure": null, "rulings": [] });
    for unreadable in ["{".to_owned(), newer.to_string()] {
        std::fs::write(folder.path().join(FILE), &unreadable).unwrap();
        assert_eq!(words(folder.path(), &facts, rules()), rules());
        store(folder.path(), &silent);
        let kept = std::fs::read_to_string(folder.path().join(FILE)).unwrap();
        assert_eq!(kept, unreadable, "somebody may read it");
    }
    let away = folder.path().join("away");
    store(&away, &silent);
    assert_eq!(words(&away, &facts, rules()), rules());
}

#[test]
fn words_are_not_replaced_by_a_failure_to_say_them_again() {
    let folder = tempfile::tempdir().unwrap();
    let facts = facts();
    let silent = Narration::new("late", Vec::new(), Some("it did not answer".to_owned()), &facts);
    store(folder.path(), &silent);
    assert_eq!(stored_narration(folder.path()), Ok(Some(silent.clone())));
    let spoken = Narration::new("writer", whole("Mean TTFT at c=4 is 115.15 ms."), None, &facts);
    store(folder.path(), &spoken);
    store(folder.path(), &silent);
    assert_eq!(stored_narration(folder.path()), Ok(Some(spoken)));
    let again = Narration::new("other", whole("Mean TTFT at c=2 is 212.18 ms."), None, &facts);
    store(folder.path(), &again);
    assert_eq!(stored_narration(folder.path()), Ok(Some(again)));
}

#[test]
fn a_suite_has_the_key_of_its_target_and_takes_no_other() {
    let target = Some(NarratorChoice::Target);
    let plain = NarratorArguments { narrator: target.clone(), narrator_key_file: None };
    let keyed = NarratorArguments { narrator: target, narrator_key_file: Some("key".into()) };
    let live = [without_key()];
    assert!(matches!(Writer::for_suite(&plain, Some(&live)), Ok(Writer::Measured(_))));
    let refused = Writer::for_suite(&keyed, Some(&live)).unwrap_err();
    assert!(refused.message().contains(KEY_FLAG), "{refused:?}");
    assert!(Writer::for_suite(&plain, None).unwrap_err().message().contains("virtual time"));
}

#[test]
fn a_narrator_that_babbles_or_fails_leaves_the_page_to_the_rules() {
    let facts = facts();
    for (status, body, why) in [
        (200, saying("lorem ipsum dolor. TTFT is 999 ms at c=2."), "none of its 2 sentences"),
        (200, saying("<think>for ever and ever"), "no sentence"),
        (500, "oops".to_owned(), "status 500"),
        (401, "oops".to_owned(), "without a key"),
        (200, "{}".to_owned(), "choices"),
        (200, "<html>".to_owned(), "not JSON"),
    ] {
        let fake = Fake::saying(vec![(200, MODELS.to_owned()), (status, body)]);
        let narrator = Narrator::at(&fake.base(), &without_key()).unwrap();
        let page = narrate(&narrator, &facts, &nobody()).narrative(&facts, rules());
        fake.thread.join().unwrap();
        assert_eq!(page.summary, rules().summary);
        let Author::RulesInstead { name, why: said } = &page.author else { panic!("{page:?}") };
        assert_eq!(name, "writer");
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn a_key_goes_to_the_narrator_and_into_no_message() {
    let folder = tempfile::tempdir().unwrap();
    let key_file = folder.path().join("key");
    std::fs::write(&key_file, "narrator-key\n").unwrap();
    let fake = Fake::saying(vec![(200, MODELS.to_owned()), (401, "narrator-key".to_owned())]);
    let narrator =
        Narrator::at(&fake.base(), &Secrets::typed(KEY_FLAG, Some(&key_file)).unwrap()).unwrap();
    let narration = narrate(&narrator, &facts(), &nobody());
    let asked = fake.thread.join().unwrap();
    assert!(asked[1].to_lowercase().contains("authorization: bearer narrator-key"));
    assert!(!serde_json::to_string(&narration).unwrap().contains("narrator-key"));
}

#[test]
fn the_measured_model_speaks_through_the_chat_api() {
    let fake = Fake::saying(vec![(200, saying("Hello."))]);
    let target = TargetTable { api: Some(Api::Completions), ..TargetTable::default() };
    let draft = SpecDraft { url: Some(fake.base()), target, ..SpecDraft::default() };
    let spec = draft.resolve().unwrap();
    let narrator = Narrator::measured(&spec, &without_key(), "writer").unwrap();
    let said = ask(&narrator, "Who are you?", Duration::from_secs(30), &nobody());
    assert_eq!(said.unwrap(), "Hello.");
    fake.thread.join().unwrap();
}
