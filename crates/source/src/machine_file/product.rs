//! The model of the machine and its firmware in a file.

use nodewise_machine::Product;
use serde::{Deserialize, Serialize};

#[derive(Default, Deserialize, PartialEq, Serialize)]
pub(super) struct ProductFile {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    vendor: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    firmware_vendor: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    firmware_version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    firmware_date: Option<String>,
}

impl ProductFile {
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl From<&Product> for ProductFile {
    fn from(product: &Product) -> Self {
        let Product { vendor, name, firmware_vendor, firmware_version, firmware_date } = product.clone();
        Self { vendor, name, firmware_vendor, firmware_version, firmware_date }
    }
}

impl From<ProductFile> for Product {
    fn from(product: ProductFile) -> Self {
        let ProductFile { vendor, name, firmware_vendor, firmware_version, firmware_date } = product;
        Self { vendor, name, firmware_vendor, firmware_version, firmware_date }
    }
}
