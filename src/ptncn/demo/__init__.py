"""The demo: a P-TNCN and an LSTM of equal size learn one changing stream, and a page shows the result."""
