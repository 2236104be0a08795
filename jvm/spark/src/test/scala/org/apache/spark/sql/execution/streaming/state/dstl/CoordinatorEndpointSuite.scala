package org.apache.spark.sql.execution.streaming.state.dstl

import java.util.UUID

import sparkdstl.log.format.{SegmentKey, SegmentKind}

import org.apache.spark.SparkEnv

class CoordinatorEndpointSuite extends QuerySuite {

  test("the driver itself warns of the late seal of a run that another one has replaced") {
    CoordinatorEndpoint.registryOf(SparkEnv.get)
    val client = CoordinatorClient.connect(SparkEnv.get, directory.toUri.toString, new UUID(1, 2)).get
    val key = SegmentKey(0, 3, "", 12, None, SegmentKind.Changelog)
    var reply: SealReply = SealReply.Accepted
    val warnings = Warnings.during { reply = client.seal(SealRequest("7", key, Vector.empty)) }
    assert(reply == SealReply.Refused("another run has taken over"))
    val warning = warnings.filter(_.contains("DSTL_SEAL_REFUSED"))
    assert(warning.size == 1)
    assert(Seq("partition 3 version 12", "another run has taken over", "executor 7").forall(warning.head.contains))
  }
}
