//! The written forms of the numbers in an object or array, by the index of the field or item.

use std::iter::Peekable;

/// The written forms of the numbers in one object or array, each with the index of its field or item, in ascending
/// order of the indexes.
#[derive(Debug, Clone, Default)]
pub struct Numbers(pub(super) Vec<(usize, WrittenNumber)>);

/// The written form of a number, or the written forms inside a nested object or array.
#[derive(Debug, Clone)]
pub(super) enum WrittenNumber {
    Text(Box<str>),
    Inside(Numbers),
}

/// The written forms of the numbers in one value: of the value itself, or of the numbers inside an object or array.
#[derive(Debug, Clone, Copy, Default)]
pub struct WrittenForm<'n>(Option<&'n WrittenNumber>);

impl<'n> WrittenForm<'n> {
    /// Returns the written form of the value itself. Returns `None` if the value has no written form, or is an object
    /// or array.
    pub(in crate::model) fn text(self) -> Option<&'n str> {
        match self.0? {
            WrittenNumber::Text(text) => Some(text),
            WrittenNumber::Inside(_) => None,
        }
    }

    /// Returns the written form of the field or item at the index `place`, if this value is an object or array.
    /// Otherwise, returns an empty form.
    pub(in crate::model) fn at(self, place: usize) -> WrittenForm<'n> {
        inside(self.0).map_or_else(WrittenForm::default, |numbers| numbers.form(place))
    }

    pub(in crate::model) fn is_empty(self) -> bool {
        self.0.is_none()
    }
}

impl Numbers {
    /// Returns the written forms in the field or item at the index `place`.
    pub(in crate::model) fn form(&self, place: usize) -> WrittenForm<'_> {
        WrittenForm(self.at(place))
    }

    pub(in crate::model) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the written forms of the numbers inside the object or array at the index `place`.
    pub fn inside(&self, place: usize) -> Option<&Numbers> {
        inside(self.at(place))
    }

    pub(super) fn at(&self, place: usize) -> Option<&WrittenNumber> {
        let index = self.0.binary_search_by_key(&place, |(place, _)| *place).ok()?;
        self.0.get(index).map(|(_, number)| number)
    }

    /// Returns the size of the written forms in memory, in bytes.
    pub(in crate::model) fn size_bytes(&self) -> usize {
        let inside = self.0.iter().map(|(_, number)| match number {
            WrittenNumber::Text(text) => text.len(),
            WrittenNumber::Inside(numbers) => numbers.size_bytes(),
        });
        self.0.capacity() * size_of::<(usize, WrittenNumber)>() + inside.sum::<usize>()
    }
}

pub(super) fn inside(number: Option<&WrittenNumber>) -> Option<&Numbers> {
    match number {
        Some(WrittenNumber::Inside(numbers)) => Some(numbers),
        _ => None,
    }
}

/// An iterator over the written forms of the numbers in one object or array.
pub(super) struct NumberPlaces<'n>(Peekable<std::slice::Iter<'n, (usize, WrittenNumber)>>);

impl<'n> NumberPlaces<'n> {
    pub(super) fn new(numbers: Option<&'n Numbers>) -> NumberPlaces<'n> {
        NumberPlaces(numbers.map_or_else(Default::default, |numbers| numbers.0.iter()).peekable())
    }

    pub(super) fn inside(number: Option<&'n WrittenNumber>) -> NumberPlaces<'n> {
        NumberPlaces::new(inside(number))
    }

    /// Returns the entry for a place. The calls must pass all places in ascending order, beginning with 0.
    pub(super) fn next(&mut self, place: usize) -> Option<&'n WrittenNumber> {
        self.0.next_if(|(next, _)| *next == place).map(|(_, number)| number)
    }
}
