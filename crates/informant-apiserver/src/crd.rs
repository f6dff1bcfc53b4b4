//! CustomResourceDefinitions: from the object to served resources.
