//! Moments that a recorder put on a coarse grid. Played as they are, all requests of a tick leave
//! at once, in bursts that the traffic never had.

use inferometer_model::spec::Ticks;

use super::{Stream, TraceEntry, variation};

/// The grid that moments lie on, or seem to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Grid {
    /// The most common gap between ticks.
    tick_ns: i64,
    /// Moments this far around a tick belong to it.
    jitter_ns: i64,
    /// Share of the requests that have company in their tick.
    shared: f64,
    /// Share of the gaps between ticks that are whole multiples of the most common one.
    regular: f64,
}

/// How far recorders that write milliseconds are seen to miss their own tick.
const JITTER_NS: i64 = 2_000_000;
const JITTER_SHARE: i64 = 1_000;
/// Below this many jitters a tick could as well be busy traffic.
const TICK_JITTERS_MIN: i64 = 20;
const SHARED_MIN: f64 = 0.5;
const REGULAR_MIN: f64 = 0.8;

impl Grid {
    /// For entries in order; `None` when they have one moment or none.
    pub(super) fn find(entries: &[TraceEntry]) -> Option<Self> {
        let rough = Self::around(entries, JITTER_NS)
            .filter(|grid| TICK_JITTERS_MIN * JITTER_NS <= grid.tick_ns && grid.is_artefact());
        match rough {
            None => Self::around(entries, 0),
            Some(grid) => {
                let jitter_ns = JITTER_NS.max(grid.tick_ns / JITTER_SHARE);
                Self::around(entries, jitter_ns).or(rough)
            }
        }
    }

    fn around(entries: &[TraceEntry], jitter_ns: i64) -> Option<Self> {
        let ticks = || ticks(entries, jitter_ns);
        let starts = || ticks().map(|tick| tick[0].at_ns);
        let mut gaps: Vec<i64> =
            starts().zip(starts().skip(1)).map(|(early, late)| late - early).collect();
        gaps.sort_unstable();
        let tick_ns = most_common(&gaps, 2 * jitter_ns)?;
        let off_grid = |gap: i64| {
            let beyond = gap.rem_euclid(tick_ns);
            2 * jitter_ns < beyond.min(tick_ns - beyond)
        };
        let irregular = gaps.iter().filter(|gap| off_grid(**gap)).count();
        let alone = ticks().filter(|tick| tick.len() == 1).count();
        let share = |part: usize, whole: usize| (whole - part) as f64 / whole as f64;
        Some(Self {
            tick_ns,
            jitter_ns,
            shared: share(alone, entries.len()),
            regular: share(irregular, gaps.len()),
        })
    }

    /// Whether the recorder made it, and not the traffic.
    fn is_artefact(&self) -> bool {
        SHARED_MIN < self.shared && REGULAR_MIN <= self.regular
    }
}

/// Entries that belong to one tick, in order.
fn ticks(entries: &[TraceEntry], jitter_ns: i64) -> impl Iterator<Item = &[TraceEntry]> {
    let mut rest = entries;
    std::iter::from_fn(move || {
        let first = rest.first()?.at_ns;
        let width = rest.iter().take_while(|entry| entry.at_ns - first <= 2 * jitter_ns).count();
        let (tick, after) = rest.split_at(width);
        rest = after;
        Some(tick)
    })
}

/// The mean of the gaps in the window of this width that holds the most of them; the smallest such
/// window.
fn most_common(sorted: &[i64], width: i64) -> Option<i64> {
    let mut start = 0;
    let mut best = 0..0;
    for end in 0..sorted.len() {
        while width < sorted[end] - sorted[start] {
            start += 1;
        }
        if best.len() < end + 1 - start {
            best = start..end + 1;
        }
    }
    let sum: i128 = sorted[best.clone()].iter().map(|gap| i128::from(*gap)).sum();
    let mean = sum.checked_div(i128::try_from(best.len()).ok()?)?;
    i64::try_from(mean).ok()
}

/// Gives each request a moment within its tick, where that is asked for or called for, and says
/// so. Their order stays as it is.
pub(super) fn spread(
    entries: &mut [TraceEntry],
    grid: Option<Grid>,
    ticks: Ticks,
    seed: u64,
) -> Vec<String> {
    let moments = |entries: &[TraceEntry]| variation(entries.iter().map(|entry| entry.at_ns));
    let before = moments(entries);
    let done = match (ticks, grid) {
        (_, None) => None,
        (Ticks::Keep, Some(grid)) => grid.is_artefact().then(|| {
            format!("{}; they are played as recorded, a tick at once, as asked", grid.in_words())
        }),
        (Ticks::Auto, Some(grid)) if !grid.is_artefact() => (SHARED_MIN < grid.shared).then(|| {
            format!(
                "{:.0} % of the requests share a moment with others, but the moments lie on no \
                     grid; they are played as recorded (--ticks uniform spreads them)",
                100.0 * grid.shared
            )
        }),
        (Ticks::Auto | Ticks::Uniform, Some(grid)) => {
            place_anew(entries, grid, seed, uniform);
            Some(format!(
                "{}; they were spread evenly within the tick (--ticks keep plays them as recorded)",
                grid.in_words()
            ))
        }
        (Ticks::Poisson, Some(grid)) => {
            place_anew(entries, grid, seed, poisson);
            Some(format!("{}; they were given Poisson gaps within the tick", grid.in_words()))
        }
    };
    let variation = before.map(|before| {
        let after = moments(entries).filter(|after| before.to_bits() != after.to_bits());
        let after = after.map_or(String::new(), |after| format!("; as played it is {after:.2}"));
        format!(
            "the gaps between the recorded requests have a coefficient of variation of \
                 {before:.2}{after}"
        )
    });
    done.into_iter().chain(variation).collect()
}

fn place_anew(
    entries: &mut [TraceEntry],
    grid: Grid,
    seed: u64,
    draw: impl Fn(&mut Stream, usize) -> Vec<f64>,
) {
    let sizes: Vec<usize> = ticks(entries, grid.jitter_ns).map(<[TraceEntry]>::len).collect();
    let mut rest = entries;
    for (number, size) in sizes.into_iter().enumerate() {
        let (tick, after) = rest.split_at_mut(size);
        let start = tick[0].at_ns;
        let next = after.first().map_or(i64::MAX, |entry| entry.at_ns);
        let width = grid.tick_ns.min(next - start) as f64;
        let shares = draw(&mut Stream::new(seed, "ticks", number as u64), size);
        for (entry, share) in tick.iter_mut().zip(shares) {
            #[expect(clippy::cast_possible_truncation, reason = "shorter than the tick")]
            let into_tick = (share * width) as i64;
            entry.at_ns = start.saturating_add(into_tick);
        }
        rest = after;
    }
}

/// Places that do not know of each other, anywhere in the tick alike.
fn uniform(stream: &mut Stream, count: usize) -> Vec<f64> {
    let mut places: Vec<f64> = (0..count).map(|_| 1.0 - stream.unit()).collect();
    places.sort_unstable_by(f64::total_cmp);
    places
}

/// Exponential gaps that fill the tick: a Poisson process of which the count is known. (Its law is
/// that of [`uniform`]; the draws are others.)
fn poisson(stream: &mut Stream, count: usize) -> Vec<f64> {
    let gaps: Vec<f64> = (0..=count).map(|_| stream.exponential()).collect();
    let whole: f64 = gaps.iter().sum();
    let mut place = 0.0;
    gaps[..count]
        .iter()
        .map(|gap| {
            place += gap;
            (place / whole).min(1.0 - f64::EPSILON)
        })
        .collect()
}

impl Grid {
    fn in_words(&self) -> String {
        let shared = 100.0 * self.shared;
        let tick = length_in_words(self.tick_ns);
        format!(
            "moments lie on a grid of {tick}; {shared:.0} % of the requests share one with others"
        )
    }
}

fn length_in_words(nanos: i64) -> String {
    let (unit, length) = match nanos {
        1_000_000_000.. => ("s", nanos as f64 / 1e9),
        1_000_000.. => ("ms", nanos as f64 / 1e6),
        1_000.. => ("µs", nanos as f64 / 1e3),
        _ => ("ns", nanos as f64),
    };
    let number = format!("{length:.2}");
    format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests;
