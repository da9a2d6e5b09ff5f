"""What speculation cost and saved each workload: the line under the charts, and the page that it is explained on."""
