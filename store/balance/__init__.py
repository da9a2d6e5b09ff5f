"""What speculation cost and saved each workload in engine seconds, and who paid for whose drafts."""
