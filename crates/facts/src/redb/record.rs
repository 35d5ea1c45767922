//! How a version lies in the file: one byte that names the form, then `postcard`.

use serde::{Deserialize, Serialize};

use crate::fact::{Fact, HorizonClass, Moment, TENANT};
use crate::port::FactError;
use crate::rules::{Candidate, id_of, seq_of};

/// The form of what is written. A later form gets the next number, and this one is still read.
const FORM: u8 = 1;

/// A version, borrowed from the page that it lies in.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Record<'a> {
    pub(super) seq: u64,
    entity: &'a str,
    key: &'a str,
    value: &'a str,
    source_receipt: Option<&'a str>,
    confidence: f64,
    pub(super) stored_at: Moment,
    tokens: u32,
    pub(super) version: u64,
    supersedes: Option<u64>,
    pub(super) private: bool,
    horizon_class: HorizonClass,
    reverified_at: Option<Moment>,
    pub(super) superseded_by: Option<u64>,
    actor: Option<&'a str>,
    valid_from: Option<Moment>,
    valid_to: Option<Moment>,
    access_count: u64,
    last_accessed_at: Option<Moment>,
}

impl<'a> Record<'a> {
    pub(super) fn of(fact: &'a Fact) -> Result<Self, FactError> {
        let seq = |id: &str| {
            seq_of(id).ok_or_else(|| FactError::Unavailable("an id is not one of this store".to_owned()))
        };
        let seq_if_any = |id: &Option<String>| id.as_deref().map(seq).transpose();
        Ok(Self {
            seq: seq(&fact.fact_id)?,
            entity: &fact.entity,
            key: &fact.key,
            value: &fact.value,
            source_receipt: fact.source_receipt.as_deref(),
            confidence: fact.confidence,
            stored_at: fact.stored_at,
            tokens: fact.tokens,
            version: fact.version,
            supersedes: seq_if_any(&fact.supersedes)?,
            private: fact.private,
            horizon_class: fact.horizon_class,
            reverified_at: fact.reverified_at,
            superseded_by: seq_if_any(&fact.superseded_by)?,
            actor: fact.actor.as_deref(),
            valid_from: fact.valid_from,
            valid_to: fact.valid_to,
            access_count: fact.access_count,
            last_accessed_at: fact.last_accessed_at,
        })
    }

    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, FactError> {
        read(bytes)
    }

    pub(super) fn bytes(&self) -> Result<Vec<u8>, FactError> {
        written(self)
    }

    pub(super) fn fact(&self) -> Fact {
        Fact {
            fact_id: id_of(self.seq),
            tenant_hash: TENANT.to_owned(),
            entity: self.entity.to_owned(),
            key: self.key.to_owned(),
            value: self.value.to_owned(),
            source_receipt: self.source_receipt.map(str::to_owned),
            confidence: self.confidence,
            stored_at: self.stored_at,
            tokens: self.tokens,
            deleted: false,
            version: self.version,
            supersedes: self.supersedes.map(id_of),
            private: self.private,
            horizon_class: self.horizon_class,
            reverified_at: self.reverified_at,
            superseded_by: self.superseded_by.map(id_of),
            actor: self.actor.map(str::to_owned),
            valid_from: self.valid_from,
            valid_to: self.valid_to,
            access_count: self.access_count,
            last_accessed_at: self.last_accessed_at,
        }
    }

    pub(super) fn candidate(&self) -> Candidate<'a> {
        Candidate {
            seq: self.seq,
            entity: self.entity,
            key: self.key,
            value: self.value,
            confidence: self.confidence,
            stored_at: self.stored_at,
            tokens: self.tokens,
            private: self.private,
        }
    }
}

/// Where the version of a number lies.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Place<'a> {
    pub(super) stored_at: Moment,
    pub(super) version: u64,
    pub(super) name: &'a [u8],
}

impl<'a> Place<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, FactError> {
        read(bytes)
    }

    pub(super) fn bytes(&self) -> Result<Vec<u8>, FactError> {
        written(self)
    }
}

fn read<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, FactError> {
    match bytes.split_first() {
        Some((&FORM, rest)) => Ok(postcard::from_bytes(rest)?),
        _ => Err(FactError::Unavailable("a record has a form that is not known".to_owned())),
    }
}

fn written<T: Serialize>(value: &T) -> Result<Vec<u8>, FactError> {
    Ok(postcard::to_extend(value, vec![FORM])?)
}
