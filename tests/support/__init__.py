"""What tests of several rooms share: tables, models, servers, browsers and assertions."""
