//! The shelf in a browser tab: workers, storage and the JavaScript API.
