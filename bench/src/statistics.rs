//! Statistics of benchmark samples.

/// Repeated measurements of the same thing, in one unit.
#[derive(Debug, Clone, Default)]
pub(crate) struct Samples(Vec<f64>);

const P90_SHARE: f64 = 0.9;
const P99_SHARE: f64 = 0.99;

impl Samples {
    pub(crate) fn single(value: f64) -> Self {
        Self(vec![value])
    }

    pub(crate) fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn median(&self) -> Option<f64> {
        let sorted = self.sorted();
        let middle = sorted.len() / 2;
        let upper = *sorted.get(middle)?;
        if sorted.len() % 2 == 1 {
            return Some(upper);
        }
        Some(f64::midpoint(sorted[middle - 1], upper))
    }

    pub(crate) fn percentile_90(&self) -> Option<f64> {
        self.percentile(P90_SHARE)
    }

    pub(crate) fn percentile_99(&self) -> Option<f64> {
        self.percentile(P99_SHARE)
    }

    /// Nearest-rank percentile.
    fn percentile(&self, share: f64) -> Option<f64> {
        let sorted = self.sorted();
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a count of samples"
        )]
        let rank = (sorted.len() as f64 * share).ceil() as usize;
        sorted.get(rank.checked_sub(1)?).copied()
    }

    pub(crate) fn minimum(&self) -> Option<f64> {
        self.sorted().first().copied()
    }

    fn sorted(&self) -> Vec<f64> {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted
    }
}

/// The median of `first` divided by the median of `second`; `None` if there are no samples or the divisor is zero.
pub(crate) fn median_ratio(first: &Samples, second: &Samples) -> Option<f64> {
    let (first, second) = (first.median()?, second.median()?);
    (second > 0.0).then(|| first / second)
}

/// Formats a number with about three significant digits.
pub(crate) fn format_significant(value: f64) -> String {
    match value.abs() {
        large if large >= 100.0 => format!("{value:.0}"),
        middle if middle >= 10.0 => format!("{value:.1}"),
        small if small >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(values: &[f64]) -> Samples {
        Samples(values.to_vec())
    }

    fn is_close(found: Option<f64>, wanted: f64) -> bool {
        found.is_some_and(|found| (found - wanted).abs() < 1e-9)
    }

    #[test]
    fn median_does_not_depend_on_order() {
        assert!(is_close(samples(&[9.0, 1.0, 5.0]).median(), 5.0));
        assert!(is_close(samples(&[4.0, 1.0, 3.0, 100.0]).median(), 3.5));
        assert!(is_close(Samples::single(7.0).median(), 7.0));
        assert_eq!(samples(&[]).median(), None);
    }

    #[test]
    fn percentile_90_bounds_nine_of_ten() {
        let ten: Vec<f64> = (1..=10).rev().map(f64::from).collect();
        assert!(is_close(samples(&ten).percentile_90(), 9.0));
        assert!(is_close(samples(&[2.0, 1.0]).percentile_90(), 2.0));
        assert!(is_close(Samples::single(3.0).percentile_90(), 3.0));
        assert_eq!(samples(&[]).percentile_90(), None);
    }

    #[test]
    fn ratio_needs_both_medians() {
        assert!(is_close(median_ratio(&samples(&[1.0, 2.0, 30.0]), &samples(&[4.0])), 0.5));
        assert_eq!(median_ratio(&samples(&[1.0]), &samples(&[])), None);
        assert_eq!(median_ratio(&samples(&[1.0]), &samples(&[0.0])), None);
    }

    #[test]
    fn minimum_and_count_are_reported() {
        let mut some = samples(&[3.0, 2.0]);
        some.push(8.0);
        assert!(is_close(some.minimum(), 2.0));
        assert_eq!(some.len(), 3);
    }

    #[test]
    fn numbers_are_formatted_with_three_digits() {
        for (value, text) in [(1234.5, "1234"), (56.78, "56.8"), (4.567, "4.57"), (0.01234, "0.012")] {
            assert_eq!(format_significant(value), text);
        }
    }
}
