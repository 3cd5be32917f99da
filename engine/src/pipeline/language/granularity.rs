//! Series of preferred numbers to which `$bucketAuto` can round the boundaries of buckets.

use super::ast::Granularity;

const R5: &[f64] = &[1.0, 1.6, 2.5, 4.0, 6.3];
const R10: &[f64] = &[1.0, 1.25, 1.6, 2.0, 2.5, 3.15, 4.0, 5.0, 6.3, 8.0];
const R20: &[f64] =
    &[1.0, 1.12, 1.25, 1.4, 1.6, 1.8, 2.0, 2.24, 2.5, 2.8, 3.15, 3.55, 4.0, 4.5, 5.0, 5.6, 6.3, 7.1, 8.0, 9.0];
const R40: &[f64] = &[
    1.0, 1.06, 1.12, 1.18, 1.25, 1.32, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9, 2.0, 2.12, 2.24, 2.36, 2.5, 2.65, 2.8, 3.0, 3.15,
    3.35, 3.55, 3.75, 4.0, 4.25, 4.5, 4.75, 5.0, 5.3, 5.6, 6.0, 6.3, 6.7, 7.1, 7.5, 8.0, 8.5, 9.0, 9.5,
];
const R80: &[f64] = &[
    1.03, 1.06, 1.09, 1.12, 1.15, 1.18, 1.22, 1.25, 1.28, 1.32, 1.36, 1.4, 1.45, 1.5, 1.55, 1.6, 1.65, 1.7, 1.75, 1.8,
    1.85, 1.9, 1.95, 2.0, 2.06, 2.12, 2.18, 2.24, 2.3, 2.36, 2.43, 2.5, 2.58, 2.65, 2.72, 2.8, 2.9, 3.0, 3.07, 3.15,
    3.25, 3.35, 3.45, 3.55, 3.65, 3.75, 3.87, 4.0, 4.12, 4.25, 4.37, 4.5, 4.62, 4.75, 4.87, 5.0, 5.15, 5.3, 5.45, 5.6,
    5.8, 6.0, 6.15, 6.3, 6.5, 6.7, 6.9, 7.1, 7.3, 7.5, 7.75, 8.0, 8.25, 8.5, 8.75, 9.0, 9.25, 9.5, 9.75, 10.0,
];
const ONE_TWO_FIVE: &[f64] = &[1.0, 2.0, 5.0];
const E6: &[f64] = &[1.0, 1.5, 2.2, 3.3, 4.7, 6.8];
const E12: &[f64] = &[1.0, 1.2, 1.5, 1.8, 2.2, 2.7, 3.3, 3.9, 4.7, 5.6, 6.8, 8.2];
const E24: &[f64] = &[
    1.0, 1.1, 1.2, 1.3, 1.5, 1.6, 1.8, 2.0, 2.2, 2.4, 2.7, 3.0, 3.3, 3.6, 3.9, 4.3, 4.7, 5.1, 5.6, 6.2, 6.8, 7.5, 8.2,
    9.1,
];

/// Returns the series with the given name.
pub fn named(name: &str) -> Option<Granularity> {
    Some(match name {
        "R5" => Granularity::Series(R5),
        "R10" => Granularity::Series(R10),
        "R20" => Granularity::Series(R20),
        "R40" => Granularity::Series(R40),
        "R80" => Granularity::Series(R80),
        "1-2-5" => Granularity::Series(ONE_TWO_FIVE),
        "E6" => Granularity::Series(E6),
        "E12" => Granularity::Series(E12),
        "E24" => Granularity::Series(E24),
        "E48" => Granularity::Geometric(48),
        "E96" => Granularity::Geometric(96),
        "E192" => Granularity::Geometric(192),
        "POWERSOF2" => Granularity::PowersOf2,
        _ => return None,
    })
}

impl Granularity {
    /// Returns the lowest number of the series above `number`, which must not be negative. Returns 0, infinity and NaN
    /// unchanged.
    pub fn round_up(self, number: f64) -> f64 {
        if number == 0.0 || !number.is_finite() {
            return number;
        }
        if self == Granularity::PowersOf2 {
            return (number.log2().floor() + 1.0).exp2();
        }
        self.around(number).into_iter().find(|candidate| *candidate > number).unwrap_or(number)
    }

    /// Returns the highest number of the series below `number`, which must not be negative. Returns 0, infinity and NaN
    /// unchanged.
    pub fn round_down(self, number: f64) -> f64 {
        if number == 0.0 || !number.is_finite() {
            return number;
        }
        if self == Granularity::PowersOf2 {
            return (number.log2().ceil() - 1.0).exp2();
        }
        self.around(number).into_iter().rev().find(|candidate| *candidate < number).unwrap_or(number)
    }

    /// Returns the numbers of the series in the decade of `number` and in the adjacent decades, in ascending order.
    fn around(self, number: f64) -> Vec<f64> {
        let decade = number.log10().floor() as i32;
        (decade - 1..=decade + 1).flat_map(|decade| self.decade(decade)).collect()
    }

    fn decade(self, decade: i32) -> Vec<f64> {
        let scaled = |number: &f64| match decade {
            // Dividing by a power of ten rounds once. Multiplying by the inverse of the power would round twice.
            ..0 => number / 10f64.powi(-decade),
            0.. => number * 10f64.powi(decade),
        };
        match self {
            Granularity::Series(series) => series.iter().map(scaled).collect(),
            Granularity::Geometric(steps) => (0..steps).map(|step| scaled(&geometric(step, steps))).collect(),
            Granularity::PowersOf2 => Vec::new(),
        }
    }
}

/// Returns number `step` of the E series with `steps` numbers per decade, rounded to two decimal places. As an
/// exception, the number 9.19 of the E192 series becomes 9.2, as in the standard.
fn geometric(step: u32, steps: u32) -> f64 {
    let exact = 10f64.powf(f64::from(step) / f64::from(steps));
    let rounded = (exact * 100.0).round() / 100.0;
    if rounded == 9.19 { 9.2 } else { rounded }
}

#[cfg(test)]
mod tests {
    use super::named;

    #[test]
    fn numbers_round_to_adjacent_values_of_the_series_and_zero_stays_zero() {
        let both = |series, number| named(series).map(|series| (series.round_down(number), series.round_up(number)));
        assert_eq!(both("R5", 10.0), Some((6.3, 16.0)));
        assert_eq!(both("1-2-5", 0.3), Some((0.2, 0.5)));
        assert_eq!(both("R80", 10.0), Some((9.75, 10.3)));
        assert_eq!(both("POWERSOF2", 8.0), Some((4.0, 16.0)));
        assert_eq!(both("E192", 9.19), Some((9.09, 9.2)));
        assert_eq!(both("E24", 0.0), Some((0.0, 0.0)));
    }
}
