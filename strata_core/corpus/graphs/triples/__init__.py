"""Knowledge graphs as triples of names: files of columns, N-Triples, and OpenKE's folders."""
