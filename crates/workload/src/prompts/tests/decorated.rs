//! Pictures are decoded again, and adapters are counted.

use std::io::Cursor;

use inferometer_model::spec::Lengths;

use super::super::*;
use crate::lengths::Draw;
use crate::prompts::{Fixed, planned};

const IMAGES: Images = Images { count: 2, width: 33, height: 17 };

fn plain() -> Arc<dyn Prompts> {
    let (prompt, output) = ("hello".to_owned(), Draw::new(&Lengths::Fixed(1)));
    Arc::new(Fixed { seed: 1, prompt, input_tokens: 1, output })
}

fn with_adapters(choice: AdapterChoice, users: Users) -> Decorated {
    let names = ["a", "b", "c"].map(str::to_owned).to_vec();
    let adapters = Some(Adapters { names, choice });
    Decorated::new(plain(), &BodySpec { adapters, ..BodySpec::default() }, users, 1)
}

fn pictures(seed: u64, id: u64) -> Vec<String> {
    let body = BodySpec { images: Some(IMAGES), ..BodySpec::default() };
    let decorated = Decorated::new(plain(), &body, Users::Requests, seed);
    decorated.content(&planned(&decorated, id)).images
}

#[test]
fn pictures_are_noise_of_the_asked_size() {
    let mut pixels_of_all = Vec::new();
    for url in pictures(1, 0) {
        let encoded = url.strip_prefix("data:image/png;base64,").unwrap();
        let file = BASE64_STANDARD.decode(encoded).unwrap();
        let mut reader = png::Decoder::new(Cursor::new(file)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let frame = reader.next_frame(&mut pixels).unwrap();
        assert_eq!((frame.width, frame.height), (33, 17));
        assert_eq!(pixels.len(), 33 * 17 * 3);
        let mean = pixels.iter().map(|byte| f64::from(*byte)).sum::<f64>() / pixels.len() as f64;
        // Four standard errors: 74 / sqrt(1,683) is 1.8.
        assert!((mean - 127.5).abs() < 7.3, "{mean}");
        pixels_of_all.push(pixels);
    }
    assert_eq!(pixels_of_all.len(), 2);
    assert_ne!(pixels_of_all[0], pixels_of_all[1]);
}

#[test]
fn pictures_differ_by_request_and_seed_and_are_made_again_alike() {
    assert_eq!(pictures(1, 0), pictures(1, 0));
    assert_ne!(pictures(1, 0), pictures(1, 1));
    assert_ne!(pictures(1, 0), pictures(2, 0));
}

fn asked_of_each(choice: AdapterChoice) -> [u32; 3] {
    let names = ["a", "b", "c"];
    let decorated = with_adapters(choice, Users::Requests);
    let mut counts = [0; 3];
    for id in 0..3_000 {
        let content = decorated.content(&planned(&decorated, id));
        let model = content.model.unwrap();
        counts[names.iter().position(|name| *name == model).unwrap()] += 1;
        assert!(content.images.is_empty());
    }
    counts
}

#[test]
fn adapters_come_in_turn_or_as_drawn() {
    assert_eq!(asked_of_each(AdapterChoice::RoundRobin), [1_000; 3]);
    let random = asked_of_each(AdapterChoice::Random);
    // Four standard deviations: sqrt(3,000 * 1/3 * 2/3) is 26.
    assert!(random.iter().all(|count| count.abs_diff(1_000) < 104), "{random:?}");
    let popular = asked_of_each(AdapterChoice::Zipf(1.0));
    assert!(popular[1] < popular[0] && popular[2] <= popular[1], "{popular:?}");
}

#[test]
fn a_drawn_adapter_stays_with_its_conversation() {
    let decorated = with_adapters(AdapterChoice::Random, Users::Conversations);
    for first in 0..50 {
        let models = [0_u16, 1, 2].map(|turn| {
            let request = planned(&decorated, first + u64::from(turn));
            decorated.content(&PlannedRequest { turn, ..request }).model
        });
        assert!(models.iter().all(|model| *model == models[0]), "{models:?}");
    }
}

#[test]
fn conversations_of_one_turn_take_adapters_in_turn_with_the_others() {
    let decorated = with_adapters(AdapterChoice::RoundRobin, Users::Conversations);
    // Conversations of two turns, one, one and two.
    let standing = [(0, 0, true), (0, 1, false), (1, 0, false), (2, 0, false), (3, 0, true)];
    let models = standing.into_iter().zip(0..).map(|((item, turn, continues), id)| {
        let request = PlannedRequest { item, turn, continues, ..planned(&decorated, id) };
        decorated.content(&request).model.unwrap()
    });
    assert_eq!(models.collect::<Vec<_>>(), ["a", "a", "b", "c", "a"]);
}

#[test]
fn a_server_caches_for_each_adapter_apart() {
    let decorated = with_adapters(AdapterChoice::RoundRobin, Users::Requests);
    let seed = |id| decorated.segments(&planned(&decorated, id))[0].seed;
    assert_ne!(seed(0), seed(1));
    assert_eq!(seed(0), seed(3));
}
