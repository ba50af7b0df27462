//! A tiny reader of event streams, written from the standard and not from the engine.

/// The data of all events, in order. Lines may end in LF, CR or CR LF.
pub(crate) fn decode(stream: &[u8]) -> Vec<String> {
    let text = str::from_utf8(stream).unwrap();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = text.replace("\r\n", "\n").replace('\r', "\n");
    let (mut events, mut data) = (Vec::new(), Vec::new());
    for line in lines.split('\n') {
        if line.is_empty() {
            if !data.is_empty() {
                events.push(data.join("\n"));
            }
            data.clear();
        } else if let Some(value) = line.strip_prefix("data:") {
            data.push(value.strip_prefix(' ').unwrap_or(value).to_owned());
        } else {
            assert!(line.starts_with(':'), "neither data nor comment: {line:?}");
        }
    }
    assert!(data.is_empty(), "the stream ends inside an event");
    events
}

#[test]
fn the_reader_reads_what_the_standard_says() {
    assert_eq!(decode(b": c\n\ndata: a\ndata:b\r\n\r\ndata: x\r\r"), ["a\nb", "x"]);
}
