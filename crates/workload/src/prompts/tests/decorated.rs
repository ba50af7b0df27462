//! Pictures are decoded again, and adapters are counted.

use std::io::Cursor;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use inferometer_model::spec::{Audio, Images, Lengths, Media};

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
    decorated(&BodySpec { adapters, ..BodySpec::default() }, users, 1)
}

fn pictures(seed: u64, id: u64) -> Vec<String> {
    let body = BodySpec { images: Some(IMAGES), ..BodySpec::default() };
    media(&body, seed, id)
}

fn decorated(body: &BodySpec, users: Users, seed: u64) -> Decorated {
    let (media, _) = MediaMaker::read(body).unwrap();
    Decorated::new(plain(), body, media, users, seed)
}

fn media(body: &BodySpec, seed: u64, id: u64) -> Vec<String> {
    let decorated = decorated(body, Users::Requests, seed);
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
fn pictures_come_in_their_sizes_by_weight_or_from_files() {
    let sizes = vec![(8, 8, 3.0), (16, 4, 1.0)];
    let media_spec = Media { sizes, ..Media::default() };
    let body = BodySpec { images: Some(IMAGES), media: media_spec, ..BodySpec::default() };
    let urls = (0..400).flat_map(|id| media(&body, 1, id));
    let is_wide = |url: String| {
        let (_, data) = url.split_once(',').unwrap();
        let file = BASE64_STANDARD.decode(data).unwrap();
        u32::from_be_bytes(file[16..20].try_into().unwrap()) == 16
    };
    let wide = urls.map(is_wide).filter(|is_wide| *is_wide).count();
    // Four standard deviations of a binomial count of 200 of 800.
    assert!((151..=249).contains(&wide), "{wide} of 800");

    let folder = tempfile::tempdir().unwrap();
    for (name, content) in [("a.png", "one"), ("b.JPG", "two"), ("c.txt", "three")] {
        std::fs::write(folder.path().join(name), content).unwrap();
    }
    let media_spec = Media { image_files: Some(folder.path().to_path_buf()), ..Media::default() };
    let body = BodySpec { images: Some(IMAGES), media: media_spec, ..BodySpec::default() };
    let (_, facts) = MediaMaker::read(&body).unwrap();
    assert_eq!((facts[0].kind.as_str(), facts[0].items), ("pictures", 2));
    let found: std::collections::BTreeSet<String> =
        (0..20).flat_map(|id| media(&body, 1, id)).collect();
    let found: Vec<&str> = found.iter().map(String::as_str).collect();
    assert_eq!(found, ["data:image/jpeg;base64,dHdv", "data:image/png;base64,b25l"]);
}

#[test]
fn recordings_are_as_long_as_asked() {
    let audio = Some(Audio { count: 2, seconds: Lengths::Fixed(3), files: None });
    let media_spec = Media { audio, ..Media::default() };
    let body = BodySpec { media: media_spec, ..BodySpec::default() };
    let urls = media(&body, 1, 0);
    assert_eq!(urls.len(), 2);
    assert_ne!(urls[0], urls[1]);
    let file = BASE64_STANDARD.decode(urls[0].strip_prefix("data:audio/wav;base64,").unwrap());
    let file = file.unwrap();
    assert_eq!(file.len(), 44 + 3 * 16_000 * 2);
    assert_eq!(u32::from_le_bytes(file[40..44].try_into().unwrap()), 96_000);
    assert_eq!(u32::from_le_bytes(file[4..8].try_into().unwrap()) as usize, file.len() - 8);
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
