//! A published matrix, its figures entered again: what others called best, and what we do.

/// Preset, prompt and generation tokens per second, mean latency in seconds, the same speeds of single
/// requests, failed requests of a hundred.
pub(super) type Line = (&'static str, [f64; 5], u64);

pub(super) struct Section {
    pub(super) context: u32,
    pub(super) model: u32,
    pub(super) lines: &'static [Line],
    /// The best at reading and at generating, of those without errors.
    pub(super) highest: Option<(&'static str, &'static str)>,
}

/// Name and GPUs.
pub(super) const PRESETS: [(&str, u32); 8] = [
    ("gpu-small", 1),
    ("gpu-medium", 2),
    ("gpu-large", 4),
    ("gpu-xlarge", 8),
    ("mi210x1", 1),
    ("mi210x2", 2),
    ("H100X1", 1),
    ("H100X2", 2),
];
pub(super) const MODELS: [&str; 4] = ["Qwen-1.5B", "Llama-3B", "Llama-8B", "Qwen-32B"];

/// Tensor parallel, ten at a time.
pub(super) const SECTIONS: [Section; 16] = [
    Section {
        context: 2_048,
        model: 0,
        lines: &[
            ("H100X1", [45.74, 649.78, 6.95, 71.64, 5.10], 0),
            ("H100X2", [37.44, 521.10, 8.47, 57.64, 4.33], 0),
            ("gpu-large", [38.09, 535.91, 8.35, 58.93, 4.43], 0),
            ("gpu-medium", [39.73, 552.69, 7.96, 61.43, 4.68], 0),
            ("gpu-small", [46.63, 676.10, 6.79, 74.31, 5.21], 0),
            ("mi210x1", [43.73, 618.48, 7.24, 68.46, 5.06], 0),
            ("mi210x2", [9.35, 125.16, 8.84, 55.09, 4.13], 10),
        ],
        highest: Some(("gpu-small", "gpu-small")),
    },
    Section {
        context: 2_048,
        model: 1,
        lines: &[
            ("H100X1", [9.12, 105.12, 7.95, 64.26, 5.36], 10),
            ("H100X2", [40.23, 500.80, 7.83, 55.76, 4.55], 0),
            ("gpu-large", [41.73, 510.79, 7.37, 58.00, 4.84], 0),
            ("gpu-medium", [43.03, 532.96, 7.24, 59.75, 4.91], 0),
            ("gpu-small", [47.22, 576.56, 6.49, 65.87, 5.51], 0),
            ("gpu-xlarge", [42.42, 510.52, 7.31, 57.83, 4.91], 0),
            ("mi210x1", [45.35, 570.08, 6.73, 65.08, 5.31], 0),
            ("mi210x2", [38.17, 475.52, 8.30, 52.58, 4.30], 0),
        ],
        highest: Some(("gpu-small", "gpu-small")),
    },
    Section {
        context: 2_048,
        model: 2,
        lines: &[
            ("H100X1", [28.07, 399.07, 11.60, 42.91, 3.04], 0),
            ("H100X2", [5.08, 66.26, 11.01, 45.72, 3.19], 20),
            ("gpu-large", [34.24, 492.47, 9.52, 52.81, 3.69], 0),
            // Published as the highest at reading.
            ("gpu-medium", [34.56, 491.24, 9.17, 54.03, 3.84], 1),
            ("gpu-xlarge", [34.27, 488.51, 9.41, 52.93, 3.75], 0),
            ("mi210x1", [28.09, 407.72, 11.66, 43.22, 3.02], 0),
            ("mi210x2", [31.46, 444.93, 10.17, 48.53, 3.47], 0),
        ],
        highest: Some(("gpu-xlarge", "gpu-large")),
    },
    Section {
        context: 2_048,
        model: 3,
        lines: &[
            ("H100X1", [14.44, 123.72, 22.27, 13.42, 1.95], 0),
            ("H100X2", [20.39, 175.25, 15.88, 18.87, 2.70], 0),
            ("gpu-xlarge", [8.20, 73.99, 12.06, 27.64, 3.53], 10),
        ],
        highest: Some(("H100X2", "H100X2")),
    },
    Section {
        context: 8_192,
        model: 0,
        lines: &[
            ("H100X1", [23.80, 605.55, 12.79, 69.47, 3.21], 0),
            ("H100X2", [20.07, 517.68, 15.33, 58.55, 2.89], 0),
            ("gpu-large", [20.76, 531.39, 15.24, 58.74, 2.61], 0),
            ("gpu-medium", [22.98, 551.03, 13.77, 61.23, 2.97], 0),
            ("gpu-small", [27.97, 666.18, 11.56, 71.97, 3.87], 0),
            ("mi210x1", [24.30, 602.95, 12.67, 68.55, 3.41], 0),
            ("mi210x2", [19.05, 469.01, 17.02, 50.65, 2.56], 0),
        ],
        highest: Some(("gpu-small", "gpu-small")),
    },
    Section {
        context: 8_192,
        model: 1,
        lines: &[
            ("H100X1", [37.67, 522.51, 8.28, 58.67, 4.70], 0),
            ("H100X2", [38.42, 496.42, 8.23, 55.05, 4.63], 0),
            ("gpu-large", [40.86, 523.26, 7.82, 57.39, 4.85], 0),
            ("gpu-medium", [38.88, 531.07, 8.23, 58.16, 4.70], 0),
            ("gpu-small", [38.51, 521.73, 7.22, 65.37, 5.23], 0),
            ("gpu-xlarge", [36.69, 512.53, 8.55, 56.85, 4.64], 0),
            // Published as the highest at generating.
            ("mi210x1", [37.78, 545.31, 7.66, 64.91, 5.36], 1),
            ("mi210x2", [29.98, 421.53, 9.11, 53.83, 4.29], 0),
        ],
        highest: Some(("gpu-large", "gpu-medium")),
    },
    Section {
        context: 8_192,
        model: 2,
        lines: &[
            ("H100X1", [8.27, 369.33, 23.56, 39.56, 2.18], 63),
            ("H100X2", [7.83, 382.46, 26.82, 41.91, 2.05], 64),
            ("gpu-large", [10.82, 493.55, 30.12, 52.87, 1.78], 0),
            ("gpu-medium", [10.18, 503.87, 32.15, 53.54, 1.53], 0),
            ("gpu-xlarge", [10.79, 494.30, 30.44, 52.60, 1.74], 0),
            ("mi210x1", [8.10, 397.21, 40.79, 41.65, 1.25], 0),
            ("mi210x2", [10.57, 455.34, 30.63, 48.88, 1.81], 0),
        ],
        highest: Some(("gpu-large", "gpu-medium")),
    },
    Section {
        context: 8_192,
        model: 3,
        lines: &[
            ("H100X1", [11.49, 116.34, 22.60, 13.39, 1.91], 14),
            ("H100X2", [17.82, 160.93, 16.17, 18.63, 2.89], 2),
            ("gpu-xlarge", [25.81, 229.41, 11.28, 27.48, 3.97], 0),
        ],
        highest: Some(("gpu-xlarge", "gpu-xlarge")),
    },
    Section {
        context: 64_000,
        model: 0,
        lines: &[
            ("H100X1", [24.50, 621.06, 13.04, 68.12, 3.35], 0),
            ("H100X2", [7.58, 181.16, 14.96, 57.85, 2.85], 10),
            ("mi210x1", [24.49, 609.78, 12.68, 68.15, 3.29], 0),
            ("mi210x2", [18.45, 502.88, 17.12, 54.94, 2.48], 0),
        ],
        highest: Some(("H100X1", "H100X1")),
    },
    Section {
        context: 64_000,
        model: 1,
        lines: &[
            ("H100X1", [45.85, 570.00, 6.74, 64.60, 5.40], 0),
            ("H100X2", [40.34, 501.89, 7.80, 55.93, 4.71], 0),
            ("mi210x1", [40.51, 595.07, 7.85, 65.21, 5.22], 0),
            ("mi210x2", [30.43, 419.55, 9.04, 53.19, 4.30], 0),
        ],
        highest: Some(("H100X1", "mi210x1")),
    },
    Section {
        context: 64_000,
        model: 2,
        lines: &[
            ("H100X1", [8.35, 367.05, 19.59, 39.50, 2.53], 65),
            ("H100X2", [8.09, 386.26, 34.04, 41.59, 1.64], 41),
            ("mi210x2", [8.65, 451.61, 38.24, 47.71, 1.26], 0),
        ],
        highest: Some(("mi210x2", "mi210x2")),
    },
    Section {
        context: 64_000,
        model: 3,
        // Published as the highest; it stood alone and had errors.
        lines: &[("H100X2", [19.32, 176.10, 15.99, 19.06, 2.91], 2)],
        highest: None,
    },
    Section {
        context: 128_000,
        model: 0,
        lines: &[
            ("H100X1", [26.45, 642.54, 11.98, 70.88, 3.45], 0),
            ("H100X2", [21.76, 536.27, 14.77, 58.37, 2.87], 0),
            ("mi210x1", [24.13, 618.17, 13.10, 68.26, 3.22], 0),
            ("mi210x2", [17.80, 494.41, 17.49, 54.64, 2.40], 0),
        ],
        highest: Some(("H100X1", "H100X1")),
    },
    Section {
        context: 128_000,
        model: 1,
        lines: &[
            ("H100X1", [45.53, 574.22, 6.84, 64.60, 5.30], 0),
            ("H100X2", [30.05, 451.14, 9.50, 55.15, 4.41], 0),
            ("mi210x1", [44.17, 574.07, 7.08, 64.16, 5.30], 0),
            ("mi210x2", [32.06, 444.00, 9.42, 51.15, 4.19], 0),
        ],
        highest: Some(("H100X1", "H100X1")),
    },
    Section {
        context: 128_000,
        model: 2,
        lines: &[
            ("H100X1", [7.10, 360.40, 27.75, 40.10, 2.00], 80),
            ("H100X2", [8.38, 381.71, 28.39, 41.35, 1.95], 49),
            ("mi210x2", [10.08, 467.43, 32.70, 49.46, 1.62], 0),
        ],
        highest: Some(("mi210x2", "mi210x2")),
    },
    Section {
        context: 128_000,
        model: 3,
        lines: &[("H100X2", [18.96, 168.05, 16.02, 18.98, 2.90], 1)],
        highest: None,
    },
];

/// One row of its table of strategies, all without errors.
pub(super) struct Compared {
    pub(super) preset: &'static str,
    /// Prompt and generation tokens per second.
    pub(super) pipeline: (f64, f64),
    pub(super) tensor: (f64, f64),
    /// In per cent, as printed.
    pub(super) speedup: (f64, f64),
}

const fn compared(
    preset: &'static str,
    pipeline: (f64, f64),
    tensor: (f64, f64),
    speedup: (f64, f64),
) -> Compared {
    Compared { preset, pipeline, tensor, speedup }
}

/// Llama-3B at 2048.
pub(super) const COMPARED: [Compared; 6] = [
    compared("H100X1", (47.64, 564.79), (47.35, 573.80), (-0.6, 1.6)),
    compared("H100X2", (36.14, 449.28), (40.98, 500.43), (13.4, 11.4)),
    compared("gpu-medium", (34.17, 416.18), (43.03, 521.92), (25.9, 25.4)),
    compared("gpu-small", (47.22, 581.37), (47.80, 576.27), (1.2, -0.9)),
    compared("mi210x1", (47.79, 581.30), (46.29, 574.77), (-3.1, -1.1)),
    compared("mi210x2", (34.20, 425.94), (40.59, 489.30), (18.7, 14.9)),
];

/// Qwen-32B at 128000 on H100X2, ten at a time and one at a time.
pub(super) const TEN_AT_ONCE: ([f64; 5], u64) = ([18.96, 168.05, 16.02, 18.98, 2.90], 1);
pub(super) const ONE_AT_ONCE: ([f64; 5], u64) = ([3.62, 29.36, 10.2027, 29.45, 3.62], 0);
