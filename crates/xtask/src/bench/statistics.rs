//! Samples and what is said about them. Pure.

/// Measurements of one thing, in one unit.
#[derive(Debug, Clone, Default)]
pub(super) struct Samples(Vec<f64>);

/// The share of samples that are no worse than [`Samples::slow`].
const SLOW_SHARE: f64 = 0.9;
/// The same of [`Samples::slowest`].
const SLOWEST_SHARE: f64 = 0.99;

impl Samples {
    /// A single measurement.
    pub(super) fn one(value: f64) -> Self {
        Self(vec![value])
    }

    pub(super) fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The middle; of two middles their mean. Nothing without samples.
    pub(super) fn median(&self) -> Option<f64> {
        let sorted = self.sorted();
        let middle = sorted.len() / 2;
        let upper = *sorted.get(middle)?;
        if sorted.len() % 2 == 1 {
            return Some(upper);
        }
        Some(f64::midpoint(sorted[middle - 1], upper))
    }

    /// The 90th percentile.
    pub(super) fn slow(&self) -> Option<f64> {
        self.percentile(SLOW_SHARE)
    }

    /// The 99th percentile.
    pub(super) fn slowest(&self) -> Option<f64> {
        self.percentile(SLOWEST_SHARE)
    }

    /// By nearest rank.
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

    pub(super) fn least(&self) -> Option<f64> {
        self.sorted().first().copied()
    }

    fn sorted(&self) -> Vec<f64> {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted
    }
}

/// How many times the second median the first is; nothing when one is missing or the second is nothing.
pub(super) fn ratio(first: &Samples, second: &Samples) -> Option<f64> {
    let (first, second) = (first.median()?, second.median()?);
    (second > 0.0).then(|| first / second)
}

/// A number with about three digits that matter.
pub(super) fn shown(value: f64) -> String {
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

    fn close(found: Option<f64>, wanted: f64) -> bool {
        found.is_some_and(|found| (found - wanted).abs() < 1e-9)
    }

    #[test]
    fn the_median_is_the_middle_in_any_order() {
        assert!(close(samples(&[9.0, 1.0, 5.0]).median(), 5.0));
        assert!(close(samples(&[4.0, 1.0, 3.0, 100.0]).median(), 3.5));
        assert!(close(Samples::one(7.0).median(), 7.0));
        assert_eq!(samples(&[]).median(), None);
    }

    #[test]
    fn nine_of_ten_are_no_worse_than_the_slow_one() {
        let ten: Vec<f64> = (1..=10).rev().map(f64::from).collect();
        assert!(close(samples(&ten).slow(), 9.0));
        assert!(close(samples(&[2.0, 1.0]).slow(), 2.0));
        assert!(close(Samples::one(3.0).slow(), 3.0));
        assert_eq!(samples(&[]).slow(), None);
    }

    #[test]
    fn a_ratio_is_of_medians_and_never_of_nothing() {
        assert!(close(ratio(&samples(&[1.0, 2.0, 30.0]), &samples(&[4.0])), 0.5));
        assert_eq!(ratio(&samples(&[1.0]), &samples(&[])), None);
        assert_eq!(ratio(&samples(&[1.0]), &samples(&[0.0])), None);
    }

    #[test]
    fn the_least_and_the_count_are_kept() {
        let mut some = samples(&[3.0, 2.0]);
        some.push(8.0);
        assert!(close(some.least(), 2.0));
        assert_eq!(some.len(), 3);
    }

    #[test]
    fn numbers_are_shown_with_the_digits_that_matter() {
        for (value, text) in [(1234.5, "1234"), (56.78, "56.8"), (4.567, "4.57"), (0.01234, "0.012")] {
            assert_eq!(shown(value), text);
        }
    }
}
