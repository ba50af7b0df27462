//! The state of this machine's clock, as the programs that keep it report it.

use std::fs;

use inferometer_model::stripe::HostFacts;

use super::tool;

/// What one program says: whether the clock is synchronized, and its error in nanoseconds at most.
type State = (bool, Option<u64>);

/// A program, its arguments, and the reading of what it prints.
type Source = (&'static str, &'static [&'static str], fn(&str) -> Option<State>);

/// The first that answers is believed. `timedatectl` reads the kernel's own flag, for every other
/// program that keeps the time.
const SOURCES: [Source; 2] = [
    ("chronyc", &["-c", "tracking"], read_chrony),
    ("timedatectl", &["show", "--property=NTPSynchronized", "--value"], |text| {
        let answers = [("yes", true), ("no", false)];
        let found = answers.into_iter().find(|(word, _)| *word == text.trim());
        found.map(|(_, synchronized)| (synchronized, None))
    }),
];

/// This machine's name and the state of its clock.
pub fn clock_host() -> HostFacts {
    let line = |path: &str| fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    let mut found = SOURCES.iter().filter_map(|(program, arguments, read)| {
        Some(((*program).to_owned(), read(&tool::run(program, arguments)?)?))
    });
    let (clock_source, state) = found.next().unzip();
    HostFacts {
        name: line("/proc/sys/kernel/hostname").unwrap_or_default(),
        boot: line("/proc/sys/kernel/random/boot_id"),
        clock_source,
        synchronized: state.map(|(synchronized, _)| synchronized),
        error_ns: state.and_then(|(_, error_ns)| error_ns),
    }
}

/// One line of values after commas. The bound of the error is the one of chrony's manual: the distance
/// to the estimated time, the dispersion of the path, and half of its delay.
fn read_chrony(line: &str) -> Option<State> {
    let values: Vec<&str> = line.trim().split(',').collect();
    let seconds = |place: usize| values.get(place)?.parse::<f64>().ok().filter(|it| it.is_finite());
    let bound_s = seconds(4)?.abs() + seconds(11)?.abs() + seconds(10)?.abs() / 2.0;
    let synchronized = values.get(13).is_some_and(|leap| *leap != "Not synchronised");
    let error_ns = inferometer_model::whole::to_u64((bound_s * 1e9).ceil());
    Some((synchronized, synchronized.then_some(error_ns)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chrony_states_the_bound_of_its_error() {
        let line = "A29FC801,162.159.200.1,4,1763496000.1,-0.000011,0.000002,0.000180,-8.3,0.0,0.1,\
                    0.004,0.0005,64.2,Normal\n";
        assert_eq!(read_chrony(line), Some((true, Some(2_511_000))));
        let alone = "00000000,,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,1.0,1.0,0.0,Not synchronised";
        assert_eq!(read_chrony(alone), Some((false, None)));
        for odd in ["", "506 Cannot talk to daemon", "a,b,c", "1,2,3,4,nan,6,7,8,9,10,11,12,13,14"]
        {
            assert_eq!(read_chrony(odd), None, "{odd}");
        }
    }

    #[test]
    fn this_machine_has_a_name_and_what_is_not_known_is_absent() {
        let host = clock_host();
        assert!(!host.name.is_empty());
        assert_eq!(host.clock_source.is_some(), host.synchronized.is_some());
    }
}
