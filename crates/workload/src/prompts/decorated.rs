//! What requests of any source carry besides: pictures, and the names of adapters.

use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use inferometer_model::spec::{AdapterChoice, Adapters, BodySpec, Images};
use inferometer_model::{Content, PlannedRequest, Prompt, Segment};
use serde_json::{Map, Value};

use super::{PromptIndex, Prompts, Recipe};
use crate::lengths::Zipf;
use crate::plan::Stream;

#[derive(Debug)]
pub(crate) struct Decorated {
    seed: u64,
    inner: Arc<dyn Prompts>,
    images: Option<Images>,
    adapters: Option<AdapterNames>,
}

#[derive(Debug)]
struct AdapterNames {
    names: Vec<String>,
    choice: Choice,
    users: Users,
}

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Users {
    /// Each request by itself.
    Requests,
    /// Conversations, even those of one turn: a request's item is its conversation's number.
    Conversations,
}

#[derive(Debug)]
enum Choice {
    RoundRobin,
    Random,
    Popular(Zipf),
}

impl Decorated {
    /// Adapters, where there are any, have at least one name.
    pub(crate) fn new(inner: Arc<dyn Prompts>, body: &BodySpec, users: Users, seed: u64) -> Self {
        let adapters = body.adapters.as_ref().map(|adapters| AdapterNames::new(adapters, users));
        Self { seed, inner, images: body.images, adapters }
    }
}

impl AdapterNames {
    fn new(spec: &Adapters, users: Users) -> Self {
        let count = u32::try_from(spec.names.len()).unwrap_or(u32::MAX);
        let choice = match spec.choice {
            AdapterChoice::RoundRobin => Choice::RoundRobin,
            AdapterChoice::Random => Choice::Random,
            AdapterChoice::Zipf(exponent) => Choice::Popular(Zipf::new(count, exponent)),
        };
        Self { names: spec.names.clone(), choice, users }
    }

    /// An adapter stays with its conversation.
    fn name(&self, request: &PlannedRequest, seed: u64) -> String {
        let mut stream = Stream::new(seed, "adapters", request.conversation().0);
        let count = self.names.len() as u64;
        let number = match &self.choice {
            Choice::RoundRobin if self.users == Users::Conversations => {
                u64::from(request.item) % count
            }
            Choice::RoundRobin => request.id.0 % count,
            // A remainder of 64 bits favours no name by more than one part in 2^50.
            Choice::Random => stream.bits() % count,
            Choice::Popular(popularity) => popularity.draw(&mut stream).into(),
        };
        let last = self.names.len() - 1;
        self.names[usize::try_from(number).unwrap_or(last).min(last)].clone()
    }
}

impl Prompts for Decorated {
    fn recipe(&self, place: PromptIndex) -> Recipe {
        self.inner.recipe(place)
    }

    fn content(&self, request: &PlannedRequest) -> Content {
        let mut content = self.inner.content(request);
        if let Some(images) = self.images {
            let mut noise = Stream::new(self.seed, "images", request.id.0);
            content.images.extend((0..images.count).map(|_| picture(images, &mut noise)));
        }
        if let Some(adapters) = &self.adapters {
            content.model = Some(adapters.name(request, self.seed));
        }
        content
    }

    /// A server caches for each adapter apart. Pictures are beyond what a simulation knows of.
    fn segments(&self, request: &PlannedRequest) -> Vec<Segment> {
        let mut segments = self.inner.segments(request);
        if let Some(adapters) = &self.adapters {
            let adapter = Prompt::Text(adapters.name(request, self.seed)).likeness();
            for segment in &mut segments {
                segment.seed ^= adapter;
            }
        }
        segments
    }

    fn fields(&self, request: &PlannedRequest) -> Map<String, Value> {
        self.inner.fields(request)
    }
}

const CHANNELS: usize = 3;

/// Noise cannot be compressed, so it is not tried: pictures are made just ahead of their moment.
fn picture(images: Images, noise: &mut Stream) -> String {
    let size = images.width as usize * images.height as usize * CHANNELS;
    let mut pixels = Vec::with_capacity(size + 8);
    while pixels.len() < size {
        pixels.extend_from_slice(&noise.bits().to_le_bytes());
    }
    pixels.truncate(size);
    let mut file = Vec::with_capacity(size + size / 64 + 1_024);
    write_png(images, &pixels, &mut file).expect("memory takes every picture of at least a pixel");
    format!("data:image/png;base64,{}", BASE64_STANDARD.encode(file))
}

fn write_png(images: Images, pixels: &[u8], file: &mut Vec<u8>) -> Result<(), png::EncodingError> {
    let mut encoder = png::Encoder::new(file, images.width, images.height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::NoCompression);
    encoder.set_filter(png::Filter::NoFilter);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(pixels)?;
    writer.finish()
}

#[cfg(test)]
mod tests;
