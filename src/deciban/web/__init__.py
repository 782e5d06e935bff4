"""Pages: JavaScript and styles that the report and the page of the service share."""
