//! Pictures and recordings that prompts carry: noise, made just before it is sent, or files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use inferometer_model::file;
use inferometer_model::observations::FileFacts;
use inferometer_model::spec::{Audio, BodySpec, Images};
use sha2::{Digest, Sha256};

use crate::data_file::{DataFileError, hex, name_of};
use crate::lengths::Draw;
use crate::plan::Stream;

/// Makes what the prompts of a run carry beside their text.
#[derive(Clone, Debug, Default)]
pub(crate) struct MediaMaker {
    images: Option<Images>,
    sizes: Vec<(u32, u32, f64)>,
    /// Pictures of files, as URLs.
    pictures: Arc<[String]>,
    audio: Option<(Audio, Draw)>,
    recordings: Arc<[String]>,
}

const PICTURES: [(&str, &str); 5] = [
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("webp", "image/webp"),
    ("gif", "image/gif"),
];
const RECORDINGS: [(&str, &str); 2] = [("wav", "audio/wav"), ("mp3", "audio/mpeg")];
/// All files of a kind are held in memory.
const BYTES_MAX: u64 = 1 << 30;

impl MediaMaker {
    /// Reads the files that the body names, and what results say of them.
    pub(crate) fn read(body: &BodySpec) -> Result<(Self, Vec<FileFacts>), DataFileError> {
        let mut facts = Vec::new();
        let mut read = |path: Option<&PathBuf>, kind: &str, types: &[(&str, &str)]| {
            let Some(path) = path else { return Ok(Arc::default()) };
            let (urls, found) = read_files(path, kind, types)?;
            facts.push(found);
            Ok::<Arc<[String]>, DataFileError>(urls.into())
        };
        let media = &body.media;
        let pictures = read(media.image_files.as_ref(), "pictures", &PICTURES)?;
        let files = media.audio.as_ref().and_then(|audio| audio.files.as_ref());
        let recordings = read(files, "recordings", &RECORDINGS)?;
        let audio = media.audio.clone().map(|audio| {
            let seconds = Draw::new(&audio.seconds);
            (audio, seconds)
        });
        let (images, sizes) = (body.images, media.sizes.clone());
        Ok((Self { images, sizes, pictures, audio, recordings }, facts))
    }

    /// Those of a request, as `data:` URLs.
    pub(crate) fn make(&self, seed: u64, request: u64) -> Vec<String> {
        let mut made = Vec::new();
        if let Some(images) = self.images {
            let mut noise = Stream::new(seed, "images", request);
            let mut choice = Stream::new(seed, "image-choice", request);
            made.extend((0..images.count).map(|_| {
                if let Some(url) = pick(&self.pictures, &mut choice) {
                    return url.clone();
                }
                let (width, height) = self.size(images, &mut choice);
                picture(width, height, &mut noise)
            }));
        }
        if let Some((audio, seconds)) = &self.audio {
            let mut noise = Stream::new(seed, "audio", request);
            made.extend((0..audio.count).map(|number| {
                if let Some(url) = pick(&self.recordings, &mut noise) {
                    return url.clone();
                }
                let place = request * u64::from(audio.count) + u64::from(number);
                recording(seconds.draw_at(seed, "audio-seconds", place), &mut noise)
            }));
        }
        made
    }

    fn size(&self, images: Images, choice: &mut Stream) -> (u32, u32) {
        let total: f64 = self.sizes.iter().map(|(_, _, weight)| weight).sum();
        let mut drawn = if self.sizes.is_empty() { 0.0 } else { choice.unit() * total };
        for (width, height, weight) in &self.sizes {
            drawn -= weight;
            if drawn < 0.0 {
                return (*width, *height);
            }
        }
        (images.width, images.height)
    }
}

fn pick<'f>(files: &'f [String], choice: &mut Stream) -> Option<&'f String> {
    // A remainder of 64 bits favours no file by more than a hair.
    let number = choice.bits().checked_rem(files.len() as u64)?;
    files.get(usize::try_from(number).ok()?)
}

/// A file, or those of a folder, by their names.
fn read_files(
    path: &Path,
    kind: &str,
    types: &[(&str, &str)],
) -> Result<(Vec<String>, FileFacts), DataFileError> {
    let unreadable = |path: &Path| {
        let path = path.to_path_buf();
        move |source| DataFileError::Unreadable { path, source }
    };
    let mut files = vec![path.to_path_buf()];
    if path.is_dir() {
        let entries = fs::read_dir(path).map_err(unreadable(path))?;
        files = entries
            .map(|entry| entry.map(|entry| entry.path()).map_err(unreadable(path)))
            .collect::<Result<_, _>>()?;
        files.sort();
    }
    let (mut urls, mut hash, mut bytes_left) = (Vec::new(), Sha256::new(), BYTES_MAX);
    for file in files {
        let extension = file.extension().unwrap_or_default().to_ascii_lowercase();
        let Some((_, media_type)) = types.iter().find(|(known, _)| extension == *known) else {
            continue;
        };
        let bytes = file::read(&file, bytes_left).map_err(unreadable(&file))?;
        bytes_left -= bytes.len() as u64;
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(&bytes);
        urls.push(format!("data:{media_type};base64,{}", BASE64_STANDARD.encode(bytes)));
    }
    if urls.is_empty() {
        let known = types.iter().map(|(extension, _)| format!(".{extension}")).collect::<Vec<_>>();
        let dropped = BTreeMap::from([(format!("files that are not {}", known.join(", ")), 1)]);
        return Err(DataFileError::nothing_left(path, &dropped));
    }
    let facts = FileFacts {
        name: name_of(path),
        kind: kind.to_owned(),
        sha256: hex(&hash.finalize()),
        items: urls.len() as u64,
        dropped: BTreeMap::new(),
    };
    Ok((urls, facts))
}

/// Noise cannot be compressed, so it is not tried: pictures are made just before they are sent.
fn picture(width: u32, height: u32, noise: &mut Stream) -> String {
    // Three channels of a byte each.
    let size = width as usize * height as usize * 3;
    let mut pixels = Vec::with_capacity(size + 8);
    while pixels.len() < size {
        pixels.extend_from_slice(&noise.bits().to_le_bytes());
    }
    pixels.truncate(size);
    let mut file = Vec::with_capacity(size + size / 64 + 1_024);
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::NoCompression);
    encoder.set_filter(png::Filter::NoFilter);
    let written = encoder.write_header().and_then(|mut writer| {
        writer.write_image_data(&pixels)?;
        writer.finish()
    });
    written.expect("memory takes every picture of at least a pixel");
    format!("data:image/png;base64,{}", BASE64_STANDARD.encode(file))
}

/// Samples in a second, as speech models have them.
const SAMPLE_RATE: u32 = 16_000;

/// A WAV file of noise: one channel of 16 bits.
fn recording(seconds: u32, noise: &mut Stream) -> String {
    let length = seconds.saturating_mul(SAMPLE_RATE).saturating_mul(2);
    let mut file = Vec::with_capacity(length as usize + 44);
    file.extend_from_slice(b"RIFF");
    file.extend_from_slice(&length.saturating_add(36).to_le_bytes());
    file.extend_from_slice(b"WAVEfmt ");
    file.extend_from_slice(&16_u32.to_le_bytes());
    // Samples as they are, in one channel.
    file.extend_from_slice(&[1, 0, 1, 0]);
    file.extend_from_slice(&SAMPLE_RATE.to_le_bytes());
    file.extend_from_slice(&(SAMPLE_RATE * 2).to_le_bytes());
    file.extend_from_slice(&[2, 0, 16, 0]);
    file.extend_from_slice(b"data");
    file.extend_from_slice(&length.to_le_bytes());
    let whole = file.len() + length as usize;
    while file.len() < whole {
        file.extend_from_slice(&noise.bits().to_le_bytes());
    }
    file.truncate(whole);
    format!("data:audio/wav;base64,{}", BASE64_STANDARD.encode(file))
}
