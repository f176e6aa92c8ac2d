"""Turn records into tables: columns, cells, markers, statistics, captions and notes. Needs no torch."""
