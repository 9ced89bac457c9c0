"""A small study of simulated runs; tests add what it asks for."""

SIMULATED = """query: nexmark:q1
targets: [2000000, 20000000]
slots: [2, 4, 8]
memory_mb: [512]
testbed: fluid
slot_cpus: 1
"""
PRICES = "name,provider,region,vcpus,memory_mb,price_per_hour,currency,source,date\nlarge,x,y,8,16384,0.5,USD,z,2026\n"
