"""HTML, JavaScript and CSS shared by the report and the page."""
