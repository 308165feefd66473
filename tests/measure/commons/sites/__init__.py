"""Sites: crawls of many kinds of sites, made up by generators whose truth is known, and one real site."""
