package org.apache.hadoop.conf;

import java.util.Map;

/** A stand-in for Hadoop's: the filter reads settings only, and Hadoop's needs all of Hadoop's libraries. */
public class Configuration {
    private final Map<String, String> values;

    public Configuration() {
        this(Map.of()); // as classes of Hadoop make one
    }

    public Configuration(Map<String, String> values) {
        this.values = values;
    }

    public String get(String name) {
        return values.get(name);
    }

    public String get(String name, String otherwise) {
        return values.getOrDefault(name, otherwise);
    }
}
