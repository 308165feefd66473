"""Programs that measure speed and accuracy, apart from the tests of behaviour."""
