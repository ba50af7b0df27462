//! The gamma distribution by inversion: a uniform number in, a gamma-distributed one out.
//!
//! Only basic arithmetic and `libm`, so the same draw comes out on every machine. The root is
//! sought in `u = ln x`, between the logarithms of the two tails: far out in a tail a probability
//! is tiny and its logarithm is an ordinary number, and each tail is compared where it is the
//! accurate one (the lower by a power series, the upper by a continued fraction).

/// A gamma distribution with this shape and scale one.
#[derive(Clone, Copy, Debug)]
pub struct Gamma {
    shape: f64,
    /// ln Γ(shape + 1), the factorial of a whole shape.
    ln_factorial: f64,
    ln_shape: f64,
    /// How far `u` may be off, so that the step just made has left no error: the step's error
    /// goes with its cube, and the density changes over one over the shape's square root.
    step_fine: f64,
    /// No quantile of a probability that a double can express lies above.
    u_max: f64,
}

/// The logarithm of a tail at a point, less the one sought, and how it changes with `u`.
struct Difference {
    value: f64,
    slope: f64,
    /// The second derivative over the first.
    bend: f64,
}

/// Below this `u` the density is a pure power, to the last bit.
const U_POWER: f64 = -45.0;
/// Far more than the few steps that are ever needed; half of a bracket each is always made.
const STEPS_MAX: u32 = 100;
/// Terms of a series that has not ended by then are not coming to an end.
const TERMS_MAX: u32 = 10_000;
/// From this shape on, the upper tail's finite sum ends before its terms change their sign.
const SHAPE_LARGE: f64 = 100.0;
const EPSILON: f64 = f64::EPSILON / 4.0;

impl Gamma {
    /// The shape must be above zero; accurate from 0.01 to 1,000.
    pub fn new(shape: f64) -> Self {
        Self {
            shape,
            ln_factorial: libm::lgamma(shape + 1.0),
            ln_shape: libm::log(shape),
            step_fine: 1e-5 / libm::sqrt(1.0 + shape),
            u_max: libm::log(2.0 * shape + 1_600.0),
        }
    }

    /// The value that is exceeded with this probability, in (0, 1].
    pub fn upper_quantile(&self, upper: f64) -> f64 {
        if 1.0 <= upper {
            return 0.0;
        }
        let ln_upper = libm::log(upper);
        // `1 - upper` would lose the digits of a small `upper`.
        self.value(libm::log1p(-upper), ln_upper)
    }

    /// The value that is not reached with this probability, in [0, 1).
    pub fn quantile(&self, lower: f64) -> f64 {
        if lower <= 0.0 {
            return 0.0;
        }
        self.value(libm::log(lower), libm::log1p(-lower))
    }

    /// The value whose tails have these logarithms.
    fn value(&self, ln_lower: f64, ln_upper: f64) -> f64 {
        // The lower tail is at most x^k / Γ(k + 1), so the root lies above this.
        let mut low = (ln_lower + self.ln_factorial) / self.shape;
        if low < U_POWER {
            return libm::exp(low);
        }
        let mut high = self.u_max;
        let mut u = self.guess(low, ln_lower, ln_upper).clamp(low, high);
        for _ in 0..STEPS_MAX {
            let difference = self.difference(u, ln_lower, ln_upper);
            let newton = -difference.value / difference.slope;
            if newton < 0.0 {
                high = u;
            } else {
                low = u;
            }
            // Halley's step; where its correction is large it is not to be believed.
            let correction = 1.0 + newton * difference.bend / 2.0;
            let step = if 0.5 < correction { newton / correction } else { newton };
            let next = u + step;
            if libm::fabs(step) <= self.step_fine {
                return libm::exp(next);
            }
            let inside = low < next && next < high;
            u = if inside { next } else { low + (high - low) / 2.0 };
        }
        libm::exp(u)
    }

    /// Close enough that two steps are usual. Wilson and Hilferty's cube where it has a root; a
    /// power with its first correction at the lower end; an exponential tail at the upper.
    fn guess(&self, low: f64, ln_lower: f64, ln_upper: f64) -> f64 {
        let shape = self.shape;
        let power = libm::exp(low);
        if power < 0.3 * (shape + 1.0) && (shape < 1.0 || power < 0.1 * shape) {
            return low + libm::log1p(power / (shape + 1.0));
        }
        if shape < 0.7 {
            // Q is near x^(k-1) e^-x / Γ(k) · x / (x + 1 - k).
            let tail = -ln_upper - self.ln_factorial + self.ln_shape;
            let mut x = tail.max(0.2);
            for _ in 0..3 {
                let next = tail + shape * libm::log(x) - libm::log(x + 1.0 - shape);
                x = next.max(0.1);
            }
            return libm::log(x);
        }
        let normal = if ln_lower < ln_upper { -normal(ln_lower) } else { normal(ln_upper) };
        let cube = 1.0 - 1.0 / (9.0 * shape) + normal / (3.0 * libm::sqrt(shape));
        if cube < 0.1 {
            return low + libm::log1p(power / (shape + 1.0));
        }
        self.ln_shape + 3.0 * libm::log(cube)
    }

    fn difference(&self, u: f64, ln_lower: f64, ln_upper: f64) -> Difference {
        let x = libm::exp(u);
        // The logarithm of x^k e^-x / Γ(k + 1).
        let ln_common = self.shape * u - x - self.ln_factorial;
        if x < self.shape + 1.0 {
            let sum = self.lower_sum(x);
            let slope = self.shape / sum;
            let value = ln_common + libm::log(sum) - ln_lower;
            Difference { value, slope, bend: self.shape - x - slope }
        } else {
            let share = self.upper_share(x);
            let value = ln_common + self.ln_shape + libm::log(share) - ln_upper;
            let fall = 1.0 / share;
            Difference { value, slope: -fall, bend: self.shape - x + fall }
        }
    }

    /// P(x) Γ(k + 1) / (x^k e^-x): 1 + x/(k+1) + x²/((k+1)(k+2)) + …, all of one sign.
    fn lower_sum(&self, x: f64) -> f64 {
        let (mut term, mut sum, mut divisor) = (1.0, 1.0, self.shape);
        for _ in 0..TERMS_MAX {
            divisor += 1.0;
            term *= x / divisor;
            sum += term;
            if term < sum * EPSILON {
                break;
            }
        }
        sum
    }

    /// Q(x) Γ(k) / (x^k e^-x).
    fn upper_share(&self, x: f64) -> f64 {
        if SHAPE_LARGE <= self.shape {
            self.upper_sum(x) / x
        } else {
            upper_fraction(self.shape, x)
        }
    }

    /// 1 + (k-1)/x + (k-1)(k-2)/x² + …, which for a large shape ends while all terms are positive.
    fn upper_sum(&self, x: f64) -> f64 {
        let per_x = 1.0 / x;
        let (mut term, mut sum, mut factor) = (1.0, 1.0, self.shape);
        for _ in 0..TERMS_MAX {
            factor -= 1.0;
            term *= factor * per_x;
            sum += term;
            if term < sum * EPSILON {
                break;
            }
        }
        sum
    }
}

/// Legendre's continued fraction for Γ(k, x) / (x^k e^-x), by Lentz's method. Needs x ≥ k + 1,
/// where no denominator comes near zero.
fn upper_fraction(shape: f64, x: f64) -> f64 {
    let mut denominator = x + 1.0 - shape;
    let mut c = f64::MAX;
    let mut d = 1.0 / denominator;
    let mut fraction = d;
    let mut n = 0.0;
    for _ in 0..TERMS_MAX {
        n += 1.0;
        let numerator = n * (shape - n);
        denominator += 2.0;
        d = 1.0 / (numerator * d + denominator);
        c = denominator + numerator / c;
        let factor = c * d;
        fraction *= factor;
        if libm::fabs(factor - 1.0) < EPSILON * 4.0 {
            break;
        }
    }
    fraction
}

/// A normal quantile for a guess: the value exceeded with a probability of at most a half, given
/// by its logarithm, within 5e-4 (Hastings 1955).
pub(crate) fn normal(ln_upper: f64) -> f64 {
    let t = libm::sqrt(-2.0 * ln_upper);
    let above = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let below = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    t - above / below
}

#[cfg(test)]
mod tests;
