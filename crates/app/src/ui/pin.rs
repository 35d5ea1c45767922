//! A digest as a picture: the same digest always looks the same.

use leptos::prelude::*;

/// The first sixteen digits of a digest, drawn as squares of different strength.
#[component]
pub(crate) fn Pin(
    /// The digits.
    digits: String,
    /// Its class.
    #[prop(default = "pin")]
    class: &'static str,
) -> impl IntoView {
    let square = |(at, strength): (usize, u32)| {
        let place = |at: usize| (2 + at * 8).to_string();
        // Fifteenths, as hundredths.
        let hundredths = (strength * 100 + 7) / 15;
        let opacity = [if hundredths >= 100 { "1." } else { "." }, &two_digits(hundredths % 100)].concat();
        view! { <rect x=place(at % 4) y=place(at / 4) width="7" height="7" fill-opacity=opacity></rect> }
    };
    let strengths = digits.chars().filter_map(|digit| digit.to_digit(16)).take(16);
    let squares = strengths.enumerate().map(square).collect_view();
    view! { <svg class=class viewBox="0 0 35 35" aria-hidden="true">{squares}</svg> }
}

fn two_digits(number: u32) -> String {
    let digits = (100 + number).to_string();
    digits[1..].to_owned()
}
