"""Spark job: train on a table, evaluate on held-out rows, write the model and the scored rows.

    spark-submit --master spark://... examples/spark_job.py visits.parquet churn churn.dcb scores.parquet

The executors need deciban: install it there, or ship an environment with `--archives`.
"""

import sys

from pyspark.sql import SparkSession

from deciban import BayesClassifier


def main(table: str, target: str, model: str, scores: str) -> None:
    spark = SparkSession.builder.appName("deciban").getOrCreate()
    training, held_out = spark.read.parquet(table).randomSplit([0.8, 0.2], seed=1)
    clf = BayesClassifier().fit(training, target)
    clf.save(model)
    print(clf.evaluate(held_out, target))
    clf.predict_proba(held_out).write.mode("overwrite").parquet(scores)
    spark.stop()


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit("usage: spark-submit examples/spark_job.py TABLE TARGET MODEL.dcb SCORES")
    main(*sys.argv[1:])
