//! Drawings as PNG, for slides and chats, which show no SVG.
//!
//! Texts are drawn with a font of our own, so that a picture looks the same on every machine.

use std::sync::{Arc, OnceLock};

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::fontdb::Database;
use resvg::usvg::{Options, Tree};

const FAMILY: &str = "Roboto";
const FONTS: [&[u8]; 2] =
    [include_bytes!("fonts/Roboto-Regular.ttf"), include_bytes!("fonts/Roboto-Bold.ttf")];

/// The pixels of a drawing, `scale` times as many as it has units; `None` where it has no size, or a
/// larger one than a picture can have.
pub fn to_png(svg: &str, scale: f32) -> Option<Vec<u8>> {
    static KNOWN: OnceLock<Arc<Database>> = OnceLock::new();
    let fonts = KNOWN.get_or_init(|| {
        let mut fonts = Database::new();
        for font in FONTS {
            fonts.load_font_data(font.to_vec());
        }
        // The families of our drawings are those of the reader's system, and the last is `sans-serif`.
        fonts.set_sans_serif_family(FAMILY);
        Arc::new(fonts)
    });
    let family = FAMILY.to_owned();
    let options = Options { fontdb: Arc::clone(fonts), font_family: family, ..Options::default() };
    let tree = Tree::from_str(svg, &options).ok()?;
    let size = tree.size().to_int_size().scale_by(scale)?;
    let mut pixels = Pixmap::new(size.width(), size.height())?;
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixels.as_mut());
    pixels.encode_png().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pixels(body: &str, scale: f32) -> Pixmap {
        let svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"80\" height=\"40\" \
             viewBox=\"0 0 80 40\" font-family=\"system-ui, sans-serif\">\
             <rect width=\"80\" height=\"40\" fill=\"#fff\"/>{body}</svg>"
        );
        Pixmap::decode_png(&to_png(&svg, scale).unwrap()).unwrap()
    }

    fn dark(picture: &Pixmap) -> usize {
        picture.pixels().iter().filter(|pixel| pixel.red() < 128).count()
    }

    #[test]
    fn a_picture_has_its_texts_in_their_weight() {
        assert_eq!(dark(&pixels("", 2.0)), 0);
        let text = |weight: &str| {
            let body = format!(
                "<text x=\"4\" y=\"30\" font-size=\"24\" font-weight=\"{weight}\">Hm±9</text>"
            );
            let picture = pixels(&body, 2.0);
            assert_eq!((picture.width(), picture.height()), (160, 80));
            dark(&picture)
        };
        assert!(200 < text("400") && text("400") * 11 < text("600") * 10);
    }

    #[test]
    fn what_is_no_drawing_has_no_picture() {
        assert_eq!(to_png("no svg", 1.0), None);
        let huge = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1e9\" height=\"1e9\"/>";
        assert_eq!(to_png(huge, 2.0), None);
    }
}
