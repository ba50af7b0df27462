import sys, time
from transformers import AutoTokenizer
from vllm.benchmarks.datasets import RandomDataset
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
dataset = RandomDataset(random_seed=0)
requests, length = int(sys.argv[2]), int(sys.argv[3])
began = time.perf_counter()
dataset.sample(tokenizer=tokenizer, num_requests=requests, input_len=length, output_len=128)
print(time.perf_counter() - began)
